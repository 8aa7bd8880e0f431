/** THE list of nouns of the customer portal, in the order of the navigation. */
import { auditSink } from './nouns/audit-sink/index.ts'
import { backup } from './nouns/backup/index.ts'
import { database } from './nouns/database/index.ts'
import { devCluster } from './nouns/dev-cluster/index.ts'
import { edge } from './nouns/edge/index.ts'
import { customImage } from './nouns/custom-image/index.ts'
import { floatingIp } from './nouns/floating-ip/index.ts'
import { initScript } from './nouns/init-script/index.ts'
import { kubernetesCluster } from './nouns/kubernetes-cluster/index.ts'
import { loadBalancer } from './nouns/load-balancer/index.ts'
import { network } from './nouns/network/index.ts'
import type { Noun } from './nouns/noun.ts'
import { playground } from './nouns/playground/index.ts'
import { router } from './nouns/router/index.ts'
import { server } from './nouns/server/index.ts'
import { serverGroup } from './nouns/server-group/index.ts'
import { snapshot } from './nouns/snapshot/index.ts'
import { sshKey } from './nouns/ssh-key/index.ts'
import { storage } from './nouns/storage/index.ts'
import { webhook } from './nouns/webhook/index.ts'

export const NOUNS: readonly Noun[] = [
  server,
  serverGroup,
  sshKey,
  initScript,
  storage,
  snapshot,
  backup,
  customImage,
  network,
  router,
  floatingIp,
  loadBalancer,
  edge,
  database,
  kubernetesCluster,
  devCluster,
  playground,
  webhook,
  auditSink,
]
