/** How hosts of control planes are created and reached, as their controller is configured with it. */
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import type { HostClustersSettings } from '../../../integrations/control-planes/host-clusters.ts'
import type { MadeHost } from '../../../integrations/control-planes/made-hosts.ts'
import type { ServerAccess } from '../../../kit/kube/https-transport.ts'
import type { Store } from '../../../kit/kube/store.ts'

/** The settings, and how a created host is reached. */
export interface HostClusters {
  readonly settings: HostClustersSettings
  /** The API of a host cluster. */
  open(access: ServerAccess): { readonly store: Store; close(): Promise<void> }
  connect(host: MadeHost): Pick<ControlPlanes, 'offer'>
}
