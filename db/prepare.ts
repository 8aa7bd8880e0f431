/** The start of a process that works with the database: it runs with the newest schema and its sealing keys, or not at
 *  all. */
import type { Clock } from '../kit/sys/clock.ts'
import type { Logger } from '../kit/sys/log.ts'
import { sendAndExit } from '../kit/sys/process.ts'
import { parseSealingKeys } from '../kit/sys/sealing.ts'
import { migrate, SchemaIsNewer } from './kit/migrate.ts'
import type { Database } from './kit/open.ts'
import { refuseSealingKeys } from './sealing-key/index.ts'

/** Brings the schema up to date. Ends the process, with the reason, when the upgrade to a later release was finished,
 *  or when a key that is needed to unseal something is missing or is a different one. */
export async function prepareDatabase(
  settings: { readonly sealingKeys: string; readonly lostSealingKeys: readonly string[] },
  { db, clock, log }: { readonly db: Database; readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const newer = await migrate(db).catch((error: unknown) => {
    if (error instanceof SchemaIsNewer) return error.message
    throw error
  })
  if (newer !== undefined) {
    log.error('this release is older than the database', { reason: newer })
    return sendAndExit({ refused: newer }, 1)
  }
  const refused = await refuseSealingKeys(db, parseSealingKeys(settings.sealingKeys), {
    acceptedLosses: settings.lostSealingKeys,
    clock,
  })
  if (refused === undefined) return
  log.error('this process does not start without its sealing keys', { reason: refused })
  await sendAndExit({ refused }, 1)
}
