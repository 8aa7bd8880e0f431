/** THE list of the API server: every noun that it knows. Endpoints, admission, the webhook's rules, its rights and the
 *  targets of operations are computed from it. */
import { apiToken } from './api-token/index.ts'
import type { Kind } from './admission/kind.ts'
import { audit } from './audit/index.ts'
import { capacity } from './capacity/index.ts'
import { catalog } from './catalog/index.ts'
import type { Targets } from './change/targets.ts'
import { type AgentConnections, serverConsole } from './console/index.ts'
import { credit } from './credit/index.ts'
import { identityProvider } from './identity-provider/index.ts'
import type { IdentityParts } from './identity/parts.ts'
import { initScript } from './init-script/index.ts'
import { instance } from './instance/index.ts'
import { member } from './member/index.ts'
import { node, type Nodes } from './node/index.ts'
import type { Noun } from './noun.ts'
import { operation } from './operation/index.ts'
import { organisation } from './organisation/index.ts'
import type { Parts } from './parts.ts'
import { publicPool } from './public-pool/index.ts'
import { quota } from './quota/index.ts'
import { repair } from './repair/index.ts'
import { secondFactor } from './second-factor/index.ts'
import { server, type Servers } from './server/index.ts'
import { serverGroup } from './server-group/index.ts'
import { session } from './session/index.ts'
import { signIn } from './sign-in/index.ts'
import { sshKey } from './ssh-key/index.ts'
import { staff } from './staff/index.ts'
import { storage } from './storage/index.ts'
import { support } from './support/index.ts'
import { usage } from './usage/index.ts'

/** What endpoints may be built from. */
export interface NounParts extends Parts, IdentityParts {
  readonly servers: Servers
  readonly nodes: Nodes
  readonly targets: Targets
  readonly agents: AgentConnections
}

/** People and their credentials: these need nothing but the database. */
export const IDENTITY_NOUNS: readonly Noun<IdentityParts>[] = [
  signIn,
  session,
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

export const NOUNS: readonly Noun<NounParts>[] = [
  ...IDENTITY_NOUNS,
  catalog,
  quota,
  initScript,
  serverGroup,
  sshKey,
  operation,
  server,
  serverConsole,
  usage,
  node,
  publicPool,
  repair,
  capacity,
  storage,
  instance,
]

/** Every kind of every noun. */
export const KINDS: readonly Kind[] = NOUNS.flatMap(({ kinds }) => kinds)
