/** Every noun with a definition of its changes: code that enumerates changes starts here. */
import { backupChanges } from './backup.ts'
import { customImageChanges } from './custom-image.ts'
import { devClusterChanges } from './dev-cluster.ts'
import { edgeChanges } from './edge.ts'
import { floatingIpChanges } from './floating-ip.ts'
import { kubernetesClusterChanges } from './kubernetes-cluster.ts'
import { loadBalancerChanges } from './load-balancer.ts'
import { networkChanges } from './network.ts'
import { routerChanges } from './router.ts'
import { serverChanges } from './server.ts'
import { serverGroupChanges } from './server-group.ts'
import { webhookChanges } from './webhook.ts'
import { snapshotChanges } from './snapshot.ts'
import { storageChanges } from './storage.ts'

export const CHANGES = [
  backupChanges,
  customImageChanges,
  devClusterChanges,
  edgeChanges,
  floatingIpChanges,
  kubernetesClusterChanges,
  loadBalancerChanges,
  networkChanges,
  routerChanges,
  serverChanges,
  serverGroupChanges,
  webhookChanges,
  snapshotChanges,
  storageChanges,
] as const
