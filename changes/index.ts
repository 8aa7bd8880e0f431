/** Every noun whose changes are said once: what enumerates changes starts here. */
import { floatingIpChanges } from './floating-ip.ts'
import { networkChanges } from './network.ts'

export const CHANGES = [floatingIpChanges, networkChanges] as const
export { floatingIpChanges, networkChanges }
