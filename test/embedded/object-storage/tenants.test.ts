/** What the proxy stores of its tenants, and whom it trusts. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { openTenants, TenantConflict } from '../../../embedded/object-storage/tenants.ts'
import { openFolderUsage } from '../../../embedded/object-storage/usage.ts'
import { fingerprintOfSecret } from '../../../integrations/object-storage/control.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const KEY = 'K'.repeat(16)
const MICROSECONDS = 1_000
const at = (seconds: number): number => (NOW.getTime() + seconds * 1_000) * MICROSECONDS

async function openFrontEndTenants() {
  const folder = await mkdtemp(join(tmpdir(), 'tenants-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const secrets = new Map<string, string>()
  const open = () =>
    openTenants({
      file: join(folder, 'tenants.json'),
      keeper: {
        fingerprint: () => fingerprintOfSecret(secrets.get(KEY) ?? ''),
        tell: async ({ accessKeyId }, secret) => void secrets.set(accessKeyId, secret),
        note: async () => {},
        ensureBucket: async () => {},
        remove: async (_id, mayGo) => (await mayGo()) && (secrets.clear(), true),
        fault: () => undefined,
      },
      openUsage: () =>
        openFolderUsage(
          async () => ({ bytes: 0, objects: 0, buckets: 0, files: 0 }),
          () => NOW,
        ),
      now: () => NOW,
    })
  return { open, secrets }
}

const settingsWith = (secretAccessKey: string, toldAt?: number) => ({
  accessKeyId: KEY,
  secretAccessKey,
  bucketPrefix: 'ones-',
  quotaBytes: 1,
  isSuspended: false,
  isFrozen: false,
  ...defined({ toldAt }),
})

test('a command older than the current state is refused, also by a front end that was restarted', async () => {
  const { open, secrets } = await openFrontEndTenants()
  const tenants = await open()
  await tenants.put('ada', settingsWith('older', at(-20)))
  await tenants.put('ada', settingsWith('newer', at(-10)))
  for (const table of [tenants, await open()]) {
    await expect(table.put('ada', settingsWith('older', at(-20)))).rejects.toBeInstanceOf(TenantConflict)
    expect(table.find('ada')?.secretFingerprint).toBe(fingerprintOfSecret('newer'))
  }
  await tenants.put('ada', settingsWith('newest', at(-10)))
  expect(secrets.get(KEY)).toBe('newest')
})

test('a clock that was far ahead once holds nothing up', async () => {
  const { open, secrets } = await openFrontEndTenants()
  const tenants = await open()
  await tenants.put('ada', settingsWith('by a wrong clock', at(3_600)))
  await tenants.put('ada', settingsWith('now', at(0)))
  expect(secrets.get(KEY)).toBe('now')
})

test('what was under way when the tenant was removed does not bring it back, and what comes after does', async () => {
  const { open, secrets } = await openFrontEndTenants()
  const tenants = await open()
  await tenants.put('ada', settingsWith('first', at(-20)))
  expect(await tenants.remove('ada', false)).toBe(true)
  await expect(tenants.put('ada', settingsWith('late', at(-10)))).rejects.toBeInstanceOf(TenantConflict)
  expect([tenants.find('ada'), secrets.size]).toEqual([undefined, 0])
  await tenants.put('ada', settingsWith('again', at(1)))
  expect(secrets.get(KEY)).toBe('again')
})
