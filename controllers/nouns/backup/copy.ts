/** The copy of a backup in another zone: a separate backup, which a host of that zone creates from the store of the
 *  original. Pure. */
import { defined } from '../../../domain/defined.ts'
import { carriedBy } from '../../../resources/operation/index.ts'
import { Backup, type BackupSpec } from '../../../resources/backup/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import type { PlainAction } from '../../kit/effects.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { derivedStanza } from '../../kit/operation/stanza.ts'
import { standingOf } from '../../kit/point.ts'
import { failed } from '../../kit/synced.ts'
import type { Decision, OperationInput } from './decision.ts'

const COPY_ACTOR = 'system:backup_copy'

/** Name of the copy of the backup with that uid. */
export const copyName = (uid: string): string => derivedId(`${uid}/copy`)

/** The last step of a backup: it is online, and so is its copy. A backup whose copy fails stays online. */
export function copied(input: OperationInput): Decision {
  const { copyZone, copy, zone } = input.observed
  const standing = { ...standingOf(input.backup.status), step: 'copied' as const }
  if (copyZone === undefined || zone === undefined) return { ...standing, outcome: 'succeeded' }
  const state = copy?.status?.state
  if (copy !== undefined && state === 'online')
    return {
      ...standing,
      outcome: 'succeeded',
      events: [{ kind: 'copied', message: `Zone ${copyZone} has it as backup ${copy.metadata.name}.` }],
    }
  if (state === 'error')
    return failed('copied', `It has no copy in zone ${copyZone}: ${copy?.status?.stateDetail ?? ''}`)
  return {
    ...standing,
    actions: copy === undefined ? [begin(input, { from: zone, to: copyZone })] : [],
    waitFor: `the copy in zone ${copyZone}`,
  }
}

/** Starts the copy, with the steps and the deadline of any other backup. */
function begin(
  { backup, observed: { accountId = '' }, operation }: OperationInput,
  { from, to }: { readonly from: string; readonly to: string },
): PlainAction {
  const { namespace = '', name: original, uid = '' } = backup.metadata
  const { storageId, title, kind, expiresAt } = backup.spec
  const now = new Date(backup.status?.completedAt ?? operation.requestedAt)
  const spec: BackupSpec = {
    storageId,
    zone: to,
    title,
    kind,
    ...defined({ expiresAt }),
    copyOf: { name: original, zone: from },
    operation: derivedStanza('storage.backup', {
      seed: `${operation.id}/copy`,
      actor: COPY_ACTOR,
      now,
      arguments: carriedBy('storage.backup', storageId),
    }),
  }
  const labels = { [ACCOUNT_LABEL]: accountId }
  const metadata = { namespace, name: copyName(uid), labels, finalizers: [finalizerOf(Backup)] }
  return { do: 'ensure', type: Backup, draft: { metadata, spec } }
}
