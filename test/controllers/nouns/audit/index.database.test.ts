/** Checkpoints of the audit log with a real database and a store over HTTP: what they find that the database alone does
 *  not tell. */
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readTestimony } from '../../../../apiserver/nouns/audit/index.ts'
import { upkeep } from '../../../../apiserver/identity/upkeep.ts'
import { checkpointAudit } from '../../../../controllers/nouns/audit/index.ts'
import { appendAudits, readIntegrity, STAFF_CHAIN, verifyAudit } from '../../../../db/audit/index.ts'
import type { UnsealedAuditEntry } from '../../../../domain/audit/entry.ts'
import type { ObjectStorage } from '../../../../integrations/object-storage/control.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { createSealing } from '../../../../kit/sys/sealing.ts'
import { createAccount } from '../../../accounts.ts'
import { movableClock } from '../../../apiserver/identity/harness.ts'
import { useDatabase } from '../../../database.ts'
import { type HostileS3, startHostileS3 } from '../../../kit/chunks/hostile-s3.ts'
import { openSimulatedObjectStorage } from '../../../object-storage.ts'

const HOUR = 3_600
const database = useDatabase()
const sealing = createSealing([{ id: 'k', key: systemRandom.bytes(32) }], systemRandom)
let clock: ReturnType<typeof movableClock>
let server: HostileS3
let store: ReturnType<typeof openSimulatedObjectStorage>
beforeEach(async () => {
  clock = movableClock()
  store = openSimulatedObjectStorage(['z1'])
})
afterEach(() => server.close())

/** Its bucket is known once the platform has opened its tenant, and always the same for the same key. */
async function open() {
  const parts = () => {
    const reached: ObjectStorage = { ...store, upstreamOf: () => ({ url: server?.url.origin ?? '', authority: null }) }
    return {
      db: database.db,
      clock,
      random: systemRandom,
      log: silentLog,
      sealing,
      objectStorage: { stores: [reached], obstacle: '' },
    }
  }
  await checkpointAudit({ ...parts(), objectStorage: { stores: [unreachable(store)], obstacle: '' } }).catch(() => {})
  const bucket = [...store.tenants.values()][0]?.buckets?.[0] ?? ''
  server = await startHostileS3(bucket)
  return { ...parts(), bucket }
}
const unreachable = (from: ObjectStorage): ObjectStorage => ({
  ...from,
  upstreamOf: () => ({ url: 'http://127.0.0.1:1', authority: null }),
})

const entryOf = (account_id: string, action: string): UnsealedAuditEntry => ({
  account_id,
  actor_email: 'ada@example.com',
  actor_kind: 'user',
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action,
  resource_type: 'server',
  resource_id: 's',
  detail: {},
  outcome: 'success',
  source_ip: '',
  user_agent: '',
  request_id: newUuid(systemRandom),
  changes: [],
})
async function chainOf(count: number): Promise<string> {
  const accountId = await createAccount(database.db)
  await grow(accountId, count)
  return accountId
}
const grow = (accountId: string, count: number) =>
  database.db.transaction().execute((tx) => {
    const entries = Array.from({ length: count }, (_, index) => entryOf(accountId, `server.${index}`))
    return appendAudits(tx, entries, { clock, random: systemRandom })
  })

/** As somebody does who may write the whole database: other entries, with hashes that fit, and no memory of what was
 *  verified. */
async function writeAnew(accountId: string, count: number): Promise<void> {
  const { db } = database
  await sql`delete from audit_entry where account_id = ${accountId}`.execute(db)
  await sql`delete from audit_head where account_id = ${accountId}`.execute(db)
  await grow(accountId, count)
}

test('a chain that was rewritten completely is found by what the store testifies, and by nothing else', async () => {
  const parts = await open()
  const [honest, rewritten, cut] = [await chainOf(3), await chainOf(5), await chainOf(5)]
  await checkpointAudit(parts)
  await grow(honest, 2)
  await writeAnew(rewritten, 7)
  await writeAnew(cut, 2)
  for (const chain of [rewritten, cut]) expect((await verifyAudit(database.db, chain, clock)).status).toBe('verified')
  clock.move(HOUR)
  await upkeep(parts, clock.now())
  expect((await readIntegrity(database.db, honest)).status).toBe('verified')
  expect(await readIntegrity(database.db, rewritten)).toMatchObject({
    status: 'broken',
    break: { sequence: 5, reason: expect.stringContaining('written anew') },
  })
  expect((await readIntegrity(database.db, cut)).status).toBe('broken')
})

test('the next checkpoint finds it too, names it, and does not testify to what is there instead', async () => {
  const parts = await open()
  const [rewritten, gone] = [await chainOf(3), await chainOf(2)]
  await checkpointAudit(parts)
  const before = (await readTestimony(parts))?.heads.get(rewritten)
  await writeAnew(rewritten, 4)
  await sql`delete from audit_entry where account_id = ${gone}`.execute(database.db)
  await sql`delete from audit_head where account_id = ${gone}`.execute(database.db)
  for (const hours of [1, 24]) {
    clock.move(hours * HOUR)
    expect(await checkpointAudit(parts)).toEqual(clock.now())
    for (const chain of [rewritten, gone]) expect((await readIntegrity(database.db, chain)).status).toBe('broken')
    expect((await readTestimony(parts))?.heads.get(rewritten)).toMatchObject({ entryHash: before?.entryHash })
  }
})

test('each is a separate object, the first of a day with every chain, and none comes too soon', async () => {
  const parts = await open()
  const [one, two] = [await chainOf(1), await chainOf(1)]
  const first = await checkpointAudit(parts)
  clock.move(1)
  expect(await checkpointAudit(parts)).toEqual(first)
  await grow(one, 1)
  clock.move(HOUR)
  await checkpointAudit(parts)
  const texts = () => [...server.objects].toSorted().map(([name, { bytes }]) => [name, bytes.toString()] as const)
  const [whole, partial] = texts()
  expect([whole?.[1].includes(two), partial?.[1].includes(one), partial?.[1].includes(two)]).toEqual([
    true,
    true,
    false,
  ])
  clock.move(24 * HOUR)
  await checkpointAudit(parts)
  expect(texts().map(([name]) => /full|some/.exec(name)?.[0])).toEqual(['full', 'some', 'full'])
  expect(texts()[0]).toEqual(whole)
})

test('what the key did not sign is nobody’s testimony, and a changed record is refused', async () => {
  const parts = await open()
  const chain = await chainOf(3)
  await checkpointAudit(parts)
  const [[name, object] = ['', undefined]] = [...server.objects]
  const forged = Buffer.from(object?.bytes.toString().replace(`"${chain}",3`, `"${chain}",2`) ?? '')
  server.objects.set(name, { bytes: forged, modifiedAt: new Date() })
  expect(await readTestimony(parts)).toMatchObject({ at: undefined, forged: [name] })
  if (object !== undefined) server.objects.set(name, object)
  // Under another name it is not what it was either.
  if (object !== undefined) server.objects.set(`${name}z`, object)
  expect((await readTestimony(parts))?.heads.get(chain)?.sequence).toBe(3)
  await sql`update internal_tenant set bucket_prefix = 'elsewhere1-'`.execute(database.db)
  await expect(readTestimony(parts)).rejects.toThrow('sealing key')
  // Without the record the place is the same.
  await sql`delete from internal_tenant`.execute(database.db)
  clock.move(HOUR)
  await checkpointAudit(parts)
  expect((await readTestimony(parts))?.heads.get(chain)?.sequence).toBe(3)
})

test('the chain of staff and operators is among them', async () => {
  const parts = await open()
  await grow(STAFF_CHAIN, 2)
  await checkpointAudit(parts)
  expect((await readTestimony(parts))?.heads.get(STAFF_CHAIN)?.sequence).toBe(2)
})
