/** What each process asks of the Kubernetes API, held against the rights that the charts give it. */
import { apiServerRights } from '../../apiserver/kit/admission/rights.ts'
import { KINDS } from '../../apiserver/nouns.ts'
import { CONTROLLERS } from '../../controllers/index.ts'
import { controllerRights } from '../../controllers/rights.ts'
import { NODE_RULES } from '../../embedded/kubernetes/access/default-roles.ts'
import type { TransportRequest } from '../../kit/kube/transport.ts'
import { API_GROUP } from '../../resources/kit/define.ts'

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly verbs: readonly string[]
}

/** By the beginning of the name of a process. What else the API server may do is written into the chart by hand. */
const RIGHTS: Readonly<Record<string, { readonly rules: readonly Rule[]; readonly group?: string }>> = {
  apiserver: { rules: apiServerRights(KINDS), group: API_GROUP },
  controllers: { rules: Object.values(controllerRights(CONTROLLERS)).flat() },
  agent: { rules: NODE_RULES },
}

/** `/api/v1/…` or `/apis/group/version/…`, the namespace, then the resource, the name and the subresource. */
const PATH = new RegExp(
  [
    String.raw`^/(?:api/v1|apis/(?<group>[^/]+)/[^/]+)`,
    String.raw`(?:/namespaces/[^/]+(?=/))?`,
    String.raw`/(?<resource>[^/]+)(?:/(?<name>[^/]+)(?:/(?<subresource>[^/]+))?)?$`,
  ].join(''),
)

const WRITES: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }

/** What the process may not do of the request, for people; undefined when it may. */
export function lackingRight(processName: string, { method, path, headers }: TransportRequest): string | undefined {
  const [plain = '', query = ''] = path.split('?')
  const { group = '', resource = '', name, subresource } = PATH.exec(plain)?.groups ?? {}
  const { rules, group: only = group } = RIGHTS[/^[a-z]+/.exec(processName)?.[0] ?? ''] ?? { rules: [] }
  if (only !== group) return undefined
  const full = subresource === undefined ? resource : `${resource}/${subresource}`
  const read = name !== undefined ? 'get' : /\bwatch=(true|1)/.test(query) ? 'watch' : 'list'
  // Server-side apply makes what is not there.
  const isApply = headers?.['content-type']?.includes('apply-patch') === true && subresource === undefined
  const verbs = [WRITES[method] ?? read, ...(isApply ? ['create'] : [])]
  const lacking = verbs.filter(
    (verb) =>
      !rules.some(
        ({ apiGroups = [], resources = [], verbs: granted }) =>
          apiGroups.includes(group) && resources.includes(full) && granted.includes(verb),
      ),
  )
  return lacking.length === 0
    ? undefined
    : `${processName} may not ${lacking.join(' and ')} ${full} of ${group || 'v1'}`
}
