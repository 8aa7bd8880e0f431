/** THE list of the API server: every noun that it knows. Endpoints, admission, the webhook's rules, its rights and the
 *  targets of operations are computed from it. */
import { account } from './nouns/account/index.ts'
import { apiToken } from './nouns/api-token/index.ts'
import type { Kind } from './kit/admission/kind.ts'
import { audit } from './nouns/audit/index.ts'
import { backup } from './nouns/backup/index.ts'
import { billing } from './nouns/billing/index.ts'
import { alarm } from './nouns/alarm/index.ts'
import { capacity } from './nouns/capacity/index.ts'
import { catalog } from './nouns/catalog/index.ts'
import { controlPlane } from './nouns/control-plane/index.ts'
import { openTargets, type Targets } from './kit/change/targets.ts'
import { type AgentConnections, serverConsole } from './console/index.ts'
import { customImage } from './nouns/custom-image/index.ts'
import { credit } from './nouns/credit/index.ts'
import { database } from './nouns/database/index.ts'
import { devCluster } from './nouns/dev-cluster/index.ts'
import { edge } from './nouns/edge/index.ts'
import { floatingIp } from './nouns/floating-ip/index.ts'
import { identityProvider } from './nouns/identity-provider/index.ts'
import type { IdentityParts } from './identity/parts.ts'
import { initScript } from './nouns/init-script/index.ts'
import { instance } from './nouns/instance/index.ts'
import { invoiceRun } from './nouns/invoice-run/index.ts'
import { kubernetesCluster } from './nouns/kubernetes-cluster/index.ts'
import { kubernetesHost } from './nouns/kubernetes-host/index.ts'
import { loadBalancer } from './nouns/load-balancer/index.ts'
import { member } from './nouns/member/index.ts'
import { node } from './nouns/node/index.ts'
import { nodePool } from './nouns/node-pool/index.ts'
import type { Noun } from './kit/noun.ts'
import { network } from './nouns/network/index.ts'
import { objectStorage } from './nouns/object-storage/index.ts'
import { operation } from './nouns/operation/index.ts'
import { notice } from './nouns/notice/index.ts'
import { preference } from './nouns/preference/index.ts'
import { overview } from './nouns/overview/index.ts'
import { organisation } from './nouns/organisation/index.ts'
import type { Parts } from './kit/parts.ts'
import { payment } from './nouns/payment/index.ts'
import { playground } from './nouns/playground/index.ts'
import { price } from './nouns/price/index.ts'
import { privateCloud } from './nouns/private-cloud/index.ts'
import { publicPool } from './nouns/public-pool/index.ts'
import { quota } from './nouns/quota/index.ts'
import { quotaRequest } from './nouns/quota-request/index.ts'
import { repair } from './nouns/repair/index.ts'
import { router } from './nouns/router/index.ts'
import { secondFactor } from './nouns/second-factor/index.ts'
import { server } from './nouns/server/index.ts'
import { serverGroup } from './nouns/server-group/index.ts'
import { webhook } from './nouns/webhook/index.ts'
import { auditSink } from './nouns/audit-sink/index.ts'
import { session } from './nouns/session/index.ts'
import { signIn } from './nouns/sign-in/index.ts'
import { snapshot } from './nouns/snapshot/index.ts'
import { sshKey } from './nouns/ssh-key/index.ts'
import { staff } from './nouns/staff/index.ts'
import { storage } from './nouns/storage/index.ts'
import { storagePlacement } from './nouns/storage-placement/index.ts'
import { support } from './nouns/support/index.ts'
import { template } from './nouns/template/index.ts'
import { usage } from './nouns/usage/index.ts'
import { zone } from './nouns/zone/index.ts'

/** People and their credentials: these need only the database. */
export const IDENTITY_NOUNS: readonly Noun<IdentityParts>[] = [
  signIn,
  session,
  account,
  preference,
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
  overview,
  notice,
  price,
  quota,
  quotaRequest,
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
  alarm,
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
  webhook,
  auditSink,
] as const

type Intersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** Everything that endpoints may be built from: the parts of the process, and what each noun gives. */
export type NounParts = Parts &
  IdentityParts & { readonly targets: Targets; readonly agents: AgentConnections } & Intersection<
    ReturnType<(typeof OTHER_NOUNS)[number]['open']>
  >

/** A noun that needs something that no other gives does not compile here. */
export const NOUNS: readonly Noun<NounParts>[] = [...IDENTITY_NOUNS, ...OTHER_NOUNS]

/** Every kind of every noun. */
export const KINDS: readonly Kind[] = NOUNS.flatMap(({ kinds }) => kinds)

/** Opens every noun, once. */
export const openNouns = (parts: Parts, identity: IdentityParts, agents: AgentConnections): NounParts =>
  Object.assign(
    { ...identity, ...parts, agents, targets: openTargets(parts.caches, KINDS) },
    ...OTHER_NOUNS.map((noun) => noun.open(parts)),
  ) as NounParts // what each of the list gives
