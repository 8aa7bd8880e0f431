/** The interface of controllers to OVN. Each noun owns rows of the northbound database, and always declares all of them
 *  together. */
import type { Row } from './row.ts'

/** All rows of one owner. */
export interface Bundle {
  readonly zone: string
  /** Kind and uid of the noun, as in `Network/<uid>`. */
  readonly owner: string
  readonly rows: readonly Row[]
}

export interface Ovn {
  /** Makes the owner's rows equal to these, in one transaction; an empty list deletes them. Answers the sequence at
   *  which they are written, and costs nothing when nothing has changed. Throws Unavailable when the database does not
   *  answer, when another process writes the zone, and when a row that these need does not exist yet. */
  apply(bundle: Bundle): Promise<{ readonly sequence: number }>
  /** The IPv4 addresses of the owner's ports in the database, by the name of the port. */
  addressesOf(owner: Pick<Bundle, 'zone' | 'owner'>): Promise<ReadonlyMap<string, string>>
  /** The IPv4 addresses of all ports of the zone in the database. */
  addressesIn(zone: string): Promise<ReadonlySet<string>>
  /** The addresses to which the owner's rows of NAT forward in the database. */
  forwardsTo(owner: Pick<Bundle, 'zone' | 'owner'>): Promise<readonly string[]>
  /** The owners that have a port with the MAC address in the zone. */
  ownersOfMac(zone: string, macAddress: string): Promise<readonly string[]>
  /** The owners that have rows in the zone. */
  ownersIn(zone: string): Promise<readonly string[]>
  /** The newest sequence that all of these nodes have installed. Without nodes it is the one that is on its way to
   *  nodes. Undefined when it is not known. */
  installed(nodes: readonly string[]): Promise<number | undefined>
  close(): void
}
