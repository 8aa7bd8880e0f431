/** Fields with addresses in what the API answers: how they are called, and where they are in an answer. */

/** How fields with addresses that others reach are called. */
const ADDRESS = /(^|[_.])(ipv4|ipv6|ipv4_address|ipv6_address|address|host|endpoint|ssh_command|gateway_ipv4)$/
/** Called so, and no address that the platform gives. */
const NONE = /(^|\.)(mac_address|same_host|(members|member)\.address|loopback_twin\..*)$/
export const isAddress = (field: string): boolean => ADDRESS.test(field) && !NONE.test(field)

/** Items of a list are named after its path, where no single resource shows the same. */
export const asItems = (field: string, path: string): string =>
  field.replace(/^items\./, `${(path.split('/').at(-1) ?? '').replaceAll('-', '_')}.`)

/** What an answer at the path shows: each address with its field. */
export function addressesIn(answer: unknown, path: string): readonly (readonly [field: string, address: string])[] {
  const walk = (value: unknown, at: readonly string[]): readonly (readonly [string, string])[] => {
    if (typeof value === 'string') return [[asItems(at.join('.'), path), value]]
    if (typeof value !== 'object' || value === null) return []
    if (Array.isArray(value)) return value.flatMap((each: unknown) => walk(each, at))
    return Object.entries(value).flatMap(([name, child]) => walk(child, [...at, name]))
  }
  return walk(answer, []).filter(([field]) => isAddress(field))
}

/** How the loop over nouns (`test/e2e/addresses.endurance.test.ts`) proves a field: by another server of the zone, with
 *  a ping, with a connection to that port or to that of the URL, or with a request by HTTPS; or with TLS from where
 *  customers are. */
export const LOOPED = {
  'server.public_ipv4': 'ping',
  'server.public_ipv6': 'ping',
  'interfaces.ipv4_address': 'ping',
  'interfaces.ipv6_address': 'ping',
  'edge.public_ipv4': 'ping',
  'edge.machines.public_ipv4': 'ping',
  'edge.machines.public_ipv6': 'ping',
  'edge.machines.private_ipv4': 'ping',
  'edge.machines.private_ipv6': 'ping',
  'database.host': 5432,
  'credentials.host': 5432,
  'kubernetes_cluster.node_pools.nodes.public_ipv4': 'ping',
  'kubernetes_cluster.node_pools.nodes.public_ipv6': 'ping',
  'kubernetes_cluster.endpoint': 'tls',
  'kubernetes_cluster.endpoint_ipv4': 'tls',
  'dev_cluster.endpoint': 'connect',
  'dev_cluster.endpoint_ipv4': 'connect',
  'dev_cluster.ipv4_address': 'ping',
  'dev_cluster.ipv6_address': 'ping',
  'object_storage.endpoint': 'https',
} as const satisfies Readonly<Record<string, 'ping' | 'connect' | 'https' | 'tls' | number>>
