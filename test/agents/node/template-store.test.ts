import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { managedVersion } from '../../../agents/node/images/managed/recipe.ts'
import { MANIFEST_FILE } from '../../../agents/node/images/recipe.ts'
import { openTemplateStore } from '../../../agents/node/images/template-store.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'

const folder = await mkdtemp(join(tmpdir(), 'svccloud-templates-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

test('what is built on a host is what has been published, and nothing that is under way', async () => {
  const store = openTemplateStore({ folder, clock: systemClock, log: silentLog })
  expect(await openTemplateStore({ folder: join(folder, 'none'), clock: systemClock, log: silentLog }).built()).toEqual(
    [],
  )
  const publish = async (name: string) => {
    await mkdir(join(folder, name), { recursive: true })
    const manifest = { kernel: 'vmlinuz', initialRamdisk: 'initrd.img', commandLine: 'quiet' }
    await writeFile(join(folder, name, MANIFEST_FILE), JSON.stringify(manifest))
  }
  await mkdir(join(folder, 'debian-13', '20260101T000000Z'), { recursive: true }) // has no manifest yet
  await publish('work-debian-13-a/image')
  await publish('tiny-linux/of-another-recipe')
  expect(await store.built()).toEqual([])
  await publish('managed-database/20260102T000000Z-0123456789ab')
  expect(await store.built()).toEqual([])
  await publish('debian-13/20260102T000000Z')
  await publish('their-own/1')
  const now = new Date('2026-01-02T00:00:00Z')
  await publish(`managed-database/${await managedVersion('managed-machine', now)}`)
  expect(await store.built()).toEqual(['debian-13', 'their-own'])
  await publish(`managed-database/${await managedVersion('managed-database', now)}`)
  expect(await store.built()).toEqual(['debian-13', 'managed-database', 'their-own'])
  await publish(`kubernetes-node/${await managedVersion('kubernetes-node', now)}`)
  expect(await store.built()).toEqual(['debian-13', 'kubernetes-node', 'managed-database', 'their-own'])
})
