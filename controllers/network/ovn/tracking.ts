/** OVN tracks the connections of all ports of a switch, also of servers without a firewall. A firewall that is enabled
 *  later then knows who opened each connection, and does not take the server's next packet for the opening. */
import { FIREWALL_DIRECTIONS } from '../../../domain/server/firewall.ts'
import { ACL_DIRECTIONS } from './names.ts'
import type { Row, RowRef } from './row.ts'

/** Below everything that decides about a packet. */
const PRIORITY = 0

export const trackingRows = (ofSwitch: RowRef): readonly Row[] =>
  FIREWALL_DIRECTIONS.map((direction) => ({
    table: 'ACL',
    key: `${ofSwitch.key}-tracked-${direction}`,
    parent: { ...ofSwitch, column: 'acls' },
    columns: { direction: ACL_DIRECTIONS[direction], priority: PRIORITY, match: 'ip', action: 'allow-related' },
  }))
