/** The identity of the driver. */
import { VERSION } from '../../domain/version.ts'
import type { IdentityService } from './messages.ts'

export const DRIVER_NAME = 'csi.svccloud.dev'
/** The label of nodes with their zone, for matching volumes and nodes. */
export const ZONE_KEY = 'topology.kubernetes.io/zone'

export const identity: IdentityService = {
  GetPluginInfo: async () => ({ name: DRIVER_NAME, vendorVersion: VERSION }),
  GetPluginCapabilities: async () => ({
    capabilities: [
      { service: { type: 'CONTROLLER_SERVICE' } },
      { service: { type: 'VOLUME_ACCESSIBILITY_CONSTRAINTS' } },
      { volumeExpansion: { type: 'ONLINE' } },
    ],
  }),
  Probe: async () => ({ ready: { value: true } }),
}
