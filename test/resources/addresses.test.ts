/** Every address that a resource shows is proven by packets, in a test that a table here names, or is in the list of
 *  those that are not, with the reason. A field that is new fails until it is in one of them, and so does the line of a
 *  test that is no longer there. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ROUTES } from '../../resources/index.ts'

/** How fields with addresses that others reach are called. */
const ADDRESS = /(^|[_.])(ipv4|ipv6|ipv4_address|ipv6_address|address|host|endpoint|ssh_command|gateway_ipv4)$/
/** Called so, and no address that the platform gives. */
const NONE = /(^|\.)(mac_address|same_host|(members|member)\.address|loopback_twin\..*)$/

const OUTSIDE = 'test/controllers/load-balancer/outside.network.test.ts'
const BALANCER = 'test/controllers/load-balancer/packets.network-long.test.ts'
const DEV_CLUSTER = 'test/e2e/dev-cluster.endurance.test.ts'
const EDGE = 'test/controllers/edge/packets.network.test.ts'
const PRIVATE = 'test/controllers/ovn/private.network.test.ts'
const PUBLIC = 'test/controllers/public-network/packets.network.test.ts'
const PRODUCT = 'test/e2e/public-network.network-long.test.ts'

const GUESTS = 'guests of different hosts reach each other, by both protocols'
const BOTH = 'joins guests of different hosts, by both protocols'
const RESOLVER = 'answers for the names of its guests, and of no others'
const BETWEEN = 'leads from one of its networks to the other, by both protocols, and to no other'
const BY_DHCPV6 = 'a machine that only asks by DHCPv6 answers at the IPv6 address that it is shown with'

/** The file and the name of the test that sends packets there. */
const PROVEN: Readonly<Record<string, readonly [file: string, name: string]>> = {
  'server.public_ipv4': [PUBLIC, GUESTS],
  'server.public_ipv6': [PUBLIC, GUESTS],
  'server.ssh_command': [PRODUCT, 'are entered by ssh and scp through the door'],
  'server.ssh.host': [PRODUCT, 'are entered by ssh and scp through the door'],
  'interfaces.ipv4_address': [PRIVATE, BOTH],
  'interfaces.ipv6_address': [PRIVATE, BOTH],
  'floating_ip.address': [
    PRIVATE,
    'is reached from inside the zone as well: by servers behind routers, and by its own',
  ],
  'network.gateway_ipv4': [PRIVATE, RESOLVER],
  'router.networks.ipv4_address': [PRIVATE, RESOLVER],
  'router.networks.ipv6_address': [PRIVATE, BETWEEN],
  'router.public_ipv4': [PRIVATE, 'leads outside behind its own address, and nobody from there inside'],
  'load_balancer.public_ipv4': [OUTSIDE, 'is reached from outside by both protocols, and members know by whom'],
  'load_balancer.public_ipv6': [OUTSIDE, 'is reached from outside by both protocols, and members know by whom'],
  'load_balancer.private_ipv4': [BALANCER, 'one machine has the addresses, and members see who asks'],
  'edge.public_ipv4': [EDGE, 'spreads what comes from outside over members of the network'],
  'edge.bastion_jump_host': [EDGE, 'forwards who has a key to servers of the network, and lets nobody else in'],
  'edge.dns64_address': [EDGE, 'answers names that have IPv4 only with addresses that it translates'],
  'edge.machines.public_ipv6': [PUBLIC, BY_DHCPV6],
  'dev_cluster.ipv4_address': [DEV_CLUSTER, 'its ingress answers for what runs there, at both addresses'],
  'dev_cluster.ipv6_address': [DEV_CLUSTER, 'its ingress answers for what runs there, at both addresses'],
}
const MACHINES = 'machines of edges are reached at the addresses of their edge; those of their own only keep them apart'
const PROCESSES = 'what answers there is no server of the zone: kubectl, or a client of S3, reaches it in other tests'
const AS_A_SERVER = 'it is that of the server, which its own line proves'
/** What no test sends a packet to from another server, and why. */
const UNPROVEN: Readonly<Record<string, string>> = {
  'load_balancer.private_ipv6': 'the machines of the test have IPv4 only inside',
  'edge.machines.public_ipv4': MACHINES,
  'edge.machines.private_ipv4': MACHINES,
  'edge.machines.private_ipv6': MACHINES,
  'database.host': 'no test starts its machine in a network of a zone',
  'credentials.host': 'it is that of the database',
  'kubernetes_cluster.node_pools.nodes.public_ipv4': AS_A_SERVER,
  'kubernetes_cluster.node_pools.nodes.public_ipv6': AS_A_SERVER,
  'dev_cluster.endpoint': PROCESSES,
  'dev_cluster.endpoint_ipv4': PROCESSES,
  'kubernetes_cluster.endpoint': PROCESSES,
  'kubernetes_cluster.endpoint_ipv4': PROCESSES,
  'playground.endpoint': PROCESSES,
  'active.endpoint': PROCESSES,
  'object_storage.endpoint': PROCESSES,
}

type Schema = Readonly<Record<string, unknown>>
const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null

/** Paths of texts in the schema, without the marks of lists. */
function textsOf(schema: unknown, root: Schema, at: readonly string[], depth = 0): readonly string[] {
  if (!isSchema(schema) || depth > 12) return []
  const { $ref, properties, type } = schema
  const referred = typeof $ref === 'string' ? $ref.split('/').slice(1) : undefined
  const target = referred?.reduce<unknown>((seen, name) => (isSchema(seen) ? seen[name] : undefined), root)
  const parts = ['anyOf', 'oneOf', 'allOf', 'items'].flatMap((name) => schema[name] ?? [])
  return [
    ...(type === 'string' || (Array.isArray(type) && type.includes('string')) ? [at.join('.')] : []),
    ...[...parts, ...(target === undefined ? [] : [target])].flatMap((part) => textsOf(part, root, at, depth + 1)),
    ...(isSchema(properties) ? Object.entries(properties) : []).flatMap(([name, child]) =>
      textsOf(child, root, [...at, name], depth + 1),
    ),
  ]
}

const paths = new Set(ROUTES.map(({ path }) => path))
/** Of answers to customers; a list shows what its single resources show, and is named after its path where there are
 *  none. */
const SHOWN = new Set(
  ROUTES.filter(({ audience, method }) => audience === 'customer' && method === 'GET')
    .filter(({ path }) => !paths.has(`${path}/{id}`))
    .flatMap(({ answers, path }) => {
      const answer = answers[200]
      if (answer === undefined || answer === null) return []
      const root: Schema = { ...z.toJSONSchema(answer, { unrepresentable: 'any', io: 'output' }) }
      const list = (path.split('/').at(-1) ?? '').replaceAll('-', '_')
      return textsOf(root, root, []).map((text) => text.replace(/^items\./, `${list}.`))
    })
    .filter((text) => ADDRESS.test(text) && !NONE.test(text)),
)

test('every address that is shown has a test, or says why not', () => {
  expect([...SHOWN].sort()).toEqual([...Object.keys(PROVEN), ...Object.keys(UNPROVEN)].sort())
})
describe('the proof of', () => {
  test.each(Object.entries(PROVEN))('%s is there', (_field, [file, name]) => {
    const quoted = [`'${name}'`, `"${name}"`]
    expect(quoted.some((text) => readFileSync(file, 'utf8').includes(text))).toBe(true)
  })
})
