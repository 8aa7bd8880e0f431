/** What the ledger is told of the bytes of a name: before each change of them, and after it. */
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

/** Of other bytes of the name. */
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

/** Notes that they are made for the object, does it, and notes that they are whole. */
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

/** They are there and whole. */
export const noteMade = (notes: BytesNotes, kind: BytesKind, { name, uid = '' }: Maker): void =>
  note(notes, kind, name, () => ({ uid, state: 'made', madeFor: uid }))

/** Notes that they are ended for the object, does it, and notes that they are gone: that stays. */
export async function removing(
  notes: BytesNotes,
  kind: BytesKind,
  { name, uid = '' }: Maker,
  work: () => Promise<void>,
): Promise<void> {
  note(notes, kind, name, () => ({ uid, state: 'removing' }))
  await work()
  note(notes, kind, name, () => ({ uid, state: 'removed', ...NOTHING_ELSE }))
}

/** The names of the points that are in them from now on. */
export const noteSnapshots = (notes: BytesNotes, name: string, snapshots: readonly string[]): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, snapshots: [...snapshots] })
}

/** The guest that had them was handed over with them; undefined when it is to go on here after all. */
export const noteSuperseded = (notes: BytesNotes, name: string, superseded: BytesEntry['superseded']): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, superseded })
}

/** They are read by another host from now on; undefined when that is over and they stay what counts. */
export const noteServed = (notes: BytesNotes, name: string, served: BytesEntry['served']): void => {
  const before = notes.ledger.bytesOf('volume', name)
  if (before !== undefined) notes.ledger.putBytes('volume', name, { ...before, served })
}

/** Whether this Volume is older than the order to serve the bytes to another host, which may have them: Kubernetes was
 *  put back, or its cache is behind. */
export const isOlderThanServing = (
  entry: BytesEntry | undefined,
  { metadata: { uid, generation = 0 }, spec: { serve } }: KubeObject<Pick<VolumeSpec, 'serve'>>,
): boolean =>
  entry?.served !== undefined &&
  entry.uid === uid &&
  generation < entry.served.generation &&
  serve?.id !== entry.served.id

/** What counts is on another host, for good: the Instance that was handed over with the disk is gone from here. */
export function isSuperseded(ledger: Pick<Ledger, 'get' | 'bytesOf'>, name: string): boolean {
  const superseded = ledger.bytesOf('volume', name)?.superseded
  return superseded !== undefined && ledger.get(superseded.instance)?.transfer?.id !== superseded.transferId
}
