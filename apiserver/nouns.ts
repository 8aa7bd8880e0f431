/** THE list of the API server: every noun that it knows. Endpoints, admission, the webhook's rules, its rights and the
 *  targets of operations are computed from it. */
import { account } from './account/index.ts'
import { apiToken } from './api-token/index.ts'
import type { Kind } from './admission/kind.ts'
import { audit } from './audit/index.ts'
import { backup } from './backup/index.ts'
import { billing } from './billing/index.ts'
import { capacity } from './capacity/index.ts'
import { catalog } from './catalog/index.ts'
import { controlPlane } from './control-plane/index.ts'
import { openTargets, type Targets } from './change/targets.ts'
import { type AgentConnections, serverConsole } from './console/index.ts'
import { customImage } from './custom-image/index.ts'
import { credit } from './credit/index.ts'
import { database } from './database/index.ts'
import { devCluster } from './dev-cluster/index.ts'
import { edge } from './edge/index.ts'
import { floatingIp } from './floating-ip/index.ts'
import { identityProvider } from './identity-provider/index.ts'
import type { IdentityParts } from './identity/parts.ts'
import { initScript } from './init-script/index.ts'
import { instance } from './instance/index.ts'
import { invoiceRun } from './invoice-run/index.ts'
import { kubernetesCluster } from './kubernetes-cluster/index.ts'
import { kubernetesHost } from './kubernetes-host/index.ts'
import { loadBalancer } from './load-balancer/index.ts'
import { member } from './member/index.ts'
import { node } from './node/index.ts'
import { nodePool } from './node-pool/index.ts'
import type { Noun } from './noun.ts'
import { network } from './network/index.ts'
import { objectStorage } from './object-storage/index.ts'
import { operation } from './operation/index.ts'
import { organisation } from './organisation/index.ts'
import type { Parts } from './parts.ts'
import { payment } from './payment/index.ts'
import { playground } from './playground/index.ts'
import { price } from './price/index.ts'
import { privateCloud } from './private-cloud/index.ts'
import { publicPool } from './public-pool/index.ts'
import { quota } from './quota/index.ts'
import { repair } from './repair/index.ts'
import { router } from './router/index.ts'
import { secondFactor } from './second-factor/index.ts'
import { server } from './server/index.ts'
import { serverGroup } from './server-group/index.ts'
import { session } from './session/index.ts'
import { signIn } from './sign-in/index.ts'
import { snapshot } from './snapshot/index.ts'
import { sshKey } from './ssh-key/index.ts'
import { staff } from './staff/index.ts'
import { storage } from './storage/index.ts'
import { storagePlacement } from './storage-placement/index.ts'
import { support } from './support/index.ts'
import { template } from './template/index.ts'
import { usage } from './usage/index.ts'
import { zone } from './zone/index.ts'

/** People and their credentials: these need nothing but the database. */
export const IDENTITY_NOUNS: readonly Noun<IdentityParts>[] = [
  signIn,
  session,
  account,
  apiToken,
  secondFactor,
  identityProvider,
  member,
  organisation,
  support,
  staff,
  credit,
  audit,
]

const OTHER_NOUNS = [
  catalog,
  price,
  quota,
  initScript,
  serverGroup,
  sshKey,
  operation,
  server,
  serverConsole,
  usage,
  billing,
  payment,
  invoiceRun,
  privateCloud,
  node,
  publicPool,
  repair,
  capacity,
  controlPlane,
  storage,
  storagePlacement,
  zone,
  snapshot,
  backup,
  customImage,
  network,
  router,
  loadBalancer,
  floatingIp,
  edge,
  database,
  kubernetesCluster,
  nodePool,
  devCluster,
  kubernetesHost,
  playground,
  objectStorage,
  template,
  instance,
] as const

type Intersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** What endpoints may be built from: the parts of the process, and what each noun gives. */
export type NounParts = Parts &
  IdentityParts & { readonly targets: Targets; readonly agents: AgentConnections } & Intersection<
    ReturnType<(typeof OTHER_NOUNS)[number]['open']>
  >

/** A noun that needs what no other gives does not compile here. */
export const NOUNS: readonly Noun<NounParts>[] = [...IDENTITY_NOUNS, ...OTHER_NOUNS]

/** Every kind of every noun. */
export const KINDS: readonly Kind[] = NOUNS.flatMap(({ kinds }) => kinds)

/** Opens every noun, once. */
export const openNouns = (parts: Parts, identity: IdentityParts, agents: AgentConnections): NounParts =>
  Object.assign(
    { ...identity, ...parts, agents, targets: openTargets(parts.caches, KINDS) },
    ...OTHER_NOUNS.map((noun) => noun.open(parts)),
  ) as NounParts // what each of the list gives
