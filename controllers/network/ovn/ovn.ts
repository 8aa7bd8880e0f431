/** What controllers ask of OVN. Each noun owns rows of the northbound database, and says all of them at once. */
import type { Row } from './row.ts'

/** All rows of one owner. */
export interface Bundle {
  readonly zone: string
  /** Kind and uid of the noun, as in `Network/<uid>`. */
  readonly owner: string
  readonly rows: readonly Row[]
}

export interface Ovn {
  /** Brings the rows of the owner to these, in one transaction; none: they go. Answers the sequence at which they are
   *  written, and costs nothing when nothing has changed. Throws Unavailable when the database does not answer, when
   *  another process writes the zone, and when a row that these need is not there yet. */
  apply(bundle: Bundle): Promise<{ readonly sequence: number }>
  /** The IPv4 addresses that the owner's ports have in the database, by the name of the port. */
  addressesOf(owner: Pick<Bundle, 'zone' | 'owner'>): Promise<ReadonlyMap<string, string>>
  /** The IPv4 addresses that all ports of the zone have in the database. */
  addressesIn(zone: string): Promise<ReadonlySet<string>>
  /** Those who have rows in the zone. */
  ownersIn(zone: string): Promise<readonly string[]>
  /** The newest sequence that all of these nodes have installed, of none: that is on its way to nodes; undefined when
   *  that is not known. */
  installed(nodes: readonly string[]): Promise<number | undefined>
  close(): void
}
