/** Sealing keys are never replaced silently: a process that lacks a key which is needed to unseal something, or has
 *  another one under its id, does not start. */
import { createHmac } from 'node:crypto'
import { CompiledQuery } from 'kysely'
import type { Clock } from '../../kit/sys/clock.ts'
import type { SealingKey } from '../../kit/sys/sealing.ts'
import type { Database } from '../kit/open.ts'
import { usesText, listSealedUses, type SealedUse } from './uses.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

const checkOf = ({ key }: SealingKey): string =>
  createHmac('sha256', key).update('svccloud sealing key check').digest('hex')

/** Records the configured keys. Returns in words why the process must not start; undefined when it may.
 *  `acceptedLosses`: ids of keys without which it continues; what they sealed stays as it is and can never be unsealed
 *  again. */
export async function refuseSealingKeys(
  db: Database,
  keys: readonly SealingKey[],
  { acceptedLosses, clock }: { readonly acceptedLosses: readonly string[]; readonly clock: Pick<Clock, 'now'> },
): Promise<string | undefined> {
  const known = await selectWhere(db, 'sealing_key', { state: 'in_use' }).selectAll().execute()
  const different = keys.filter(({ id, key }) =>
    known.some((row) => row.id === id && row.check_value !== checkOf({ id, key })),
  )
  const configured = new Set(keys.map(({ id }) => id))
  const absent = known.filter(({ id }) => !configured.has(id)).map(({ id }) => id)
  // Before any key was recorded, the sealed values show which keys are needed.
  const uses = different.length > 0 || absent.length > 0 || known.length === 0 ? await usesOf(db) : []
  const missing =
    known.length > 0 ? absent : [...new Set(uses.map(({ keyId }) => keyId))].filter((id) => !configured.has(id))
  for (const id of [...different.map((key) => key.id), ...missing]) {
    const own = uses.filter(({ keyId }) => keyId === id)
    if (own.length === 0 || acceptedLosses.includes(id)) continue
    return refusal(id, own, configured.has(id))
  }
  for (const id of [...missing, ...different.map((key) => key.id)])
    await updateWhere(db, 'sealing_key', { id }).set({ state: 'lost' }).execute()
  if (keys.length > 0)
    await db
      .insertInto('sealing_key')
      .values(
        keys.map((key) => ({ id: key.id, check_value: checkOf(key), state: 'in_use' as const, made_at: clock.now() })),
      )
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet(({ ref }) => ({ check_value: ref('excluded.check_value'), state: 'in_use' })),
      )
      .execute()
  return undefined
}

const usesOf = (db: Database): Promise<readonly SealedUse[]> =>
  listSealedUses(async (text) => (await db.executeQuery<Record<string, unknown>>(CompiledQuery.raw(text))).rows)

const refusal = (id: string, uses: readonly SealedUse[], isConfigured: boolean): string =>
  `The sealing key ${id} is ${isConfigured ? 'another one than' : 'missing, which is'} the one that opens ` +
  `${usesText(uses)}. Configure it again (SVCCLOUD_SEALING_KEYS, or the file sealing-keys of npm start). To go on ` +
  `without it and give these secrets up for good: SVCCLOUD_LOST_SEALING_KEYS=${id}`
