/** Connections of all ports of a switch are known to OVN, also of servers without a firewall: one that is switched on
 *  later then knows who began what is open, and does not take the next word of its server for the beginning. */
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
