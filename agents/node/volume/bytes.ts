/** Records changes of the bytes of a name in the ledger, before and after each change. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { VolumeSpec } from '../../../resources/instance/index.ts'
import type { BytesEntry, BytesKind, Ledger } from '../ledger.ts'

export interface BytesNotes {
  readonly ledger: Pick<Ledger, 'bytesOf' | 'putBytes'>
  readonly clock: Pick<Clock, 'now'>
}

/** An object's name and uid. */
interface Maker {
  readonly name: string
  readonly uid?: string | undefined
}

/** Clears facts about earlier bytes of the name. */
const NOTHING_ELSE = { superseded: undefined, served: undefined, snapshots: undefined } as const

function note(
  { ledger, clock }: BytesNotes,
  kind: BytesKind,
  name: string,
  change: (before: Partial<BytesEntry>) => Pick<BytesEntry, 'uid' | 'state'> & Partial<BytesEntry>,
): void {
  const before = ledger.bytesOf(kind, name) ?? {}
  ledger.putBytes(kind, name, { ...before, ...change(before), at: clock.now().toISOString() })
}

/** Records that the bytes are being created for the object, creates them, and records that they are complete. */
export async function making(
  notes: BytesNotes,
  kind: BytesKind,
  { name, uid = '' }: Maker,
  work: () => Promise<void>,
): Promise<void> {
  note(notes, kind, name, () => ({ uid, state: 'making', ...NOTHING_ELSE }))
  await work()
  noteMade(notes, kind, { name, uid })
}

/** Records that they exist and are complete. */
export const noteMade = (notes: BytesNotes, kind: BytesKind, { name, uid = '' }: Maker): void =>
  note(notes, kind, name, () => ({ uid, state: 'made', madeFor: uid }))

/** Records that the bytes are being removed for the object, removes them, and records that permanently. */
export async function removing(
  notes: BytesNotes,
  kind: BytesKind,
  { name, uid = '' }: Maker,
  work: () => Promise<void>,
): Promise<void> {
  note(notes, kind, name, () => ({ uid, state: 'removing' }))
  await work()
  note(notes, kind, name, () => ({ uid, state: 'removed', ...NOTHING_ELSE }))
  if (kind === 'volume' && notes.ledger.bytesOf('current_volume', name) !== undefined)
    note(notes, 'current_volume', name, () => ({ uid, state: 'removed' }))
}

/** Whether the bytes here were in use: a guest ran with them, or the platform said that a move has ended here. */
export function isCurrent({ bytesOf }: Pick<Ledger, 'bytesOf'>, name: string): boolean {
  const [bytes, current] = [bytesOf('volume', name), bytesOf('current_volume', name)]
  return current?.state === 'made' && current.uid === bytes?.uid
}

/** Records that the bytes of the volume are in use here. It stays until they are removed. */
export function noteCurrent(notes: BytesNotes, name: string): void {
  const bytes = notes.ledger.bytesOf('volume', name)
  if (bytes !== undefined && !isCurrent(notes.ledger, name))
    note(notes, 'current_volume', name, () => ({ uid: bytes.uid, state: 'made' }))
}

/** Records the names of their current snapshots. */
export const noteSnapshots = (notes: BytesNotes, name: string, snapshots: readonly string[]): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, snapshots: [...snapshots] })
}

/** Records that the guest that had them was handed over with them; undefined when it continues here after all. */
export const noteSuperseded = (notes: BytesNotes, name: string, superseded: BytesEntry['superseded']): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, superseded })
}

/** Records that another host reads them from now on; undefined when that has ended and these bytes stay current. */
export const noteServed = (notes: BytesNotes, name: string, served: BytesEntry['served']): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, served })
}

/** Whether this Volume is older than the order to serve the bytes to another host, which may have them. Then Kubernetes
 *  was restored, or its cache is stale. */
export const isOlderThanServing = (
  entry: BytesEntry | undefined,
  { metadata: { uid, generation = 0 }, spec: { serve } }: KubeObject<Pick<VolumeSpec, 'serve'>>,
): boolean =>
  entry?.served !== undefined &&
  entry.uid === uid &&
  generation < entry.served.generation &&
  serve?.id !== entry.served.id

/** Whether the current data are permanently on another host: the Instance that was handed over with the disk was
 *  removed from this host. */
export function isSuperseded(ledger: Pick<Ledger, 'get' | 'bytesOf'>, name: string): boolean {
  const superseded = ledger.bytesOf('volume', name)?.superseded
  return superseded !== undefined && ledger.get(superseded.instance)?.transfer?.id !== superseded.transferId
}
