/** Every address that a resource shows is proven by packets, in a test that the table here names. A field that is new
 *  fails until it is in the table, and so does the line of a test that is no longer there. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ROUTES } from '../../resources/index.ts'
import { asItems, isAddress, LOOPED } from './shown-addresses.ts'

const OUTSIDE = 'test/controllers/nouns/load-balancer/outside.network.test.ts'
const DEV_CLUSTER = 'test/e2e/dev-cluster.endurance.test.ts'
const CLUSTER = 'test/controllers/nouns/kubernetes-cluster/life.kubernetes-long.test.ts'
const PLAYGROUND = 'test/hosting/processes/guests/playground.cluster.test.ts'
const EDGE = 'test/controllers/nouns/edge/packets.network.test.ts'
const PRIVATE = 'test/controllers/network/ovn/private.network.test.ts'
const DATABASE = 'test/apiserver/nouns/database/database.database.test.ts'
const LOOP = 'test/e2e/addresses.endurance.test.ts'
const PUBLIC = 'test/controllers/network/public-network/packets.network.test.ts'
const PRODUCT = 'test/e2e/public-network.network-long.test.ts'

const EACH = 'every address that %s shows answers another server of the zone'
const ENTERED = 'it is made, entered, saved, upgraded, brought back and removed'
const READY = 'its node is ready, and what runs there is served by its name'
const GUESTS = 'guests of different hosts reach each other, by both protocols'
const BOTH = 'joins guests of different hosts, by both protocols'
const RESOLVER = 'answers for the names of its guests, and of no others'
const BETWEEN = 'leads from one of its networks to the other, by both protocols, and to no other'
const INSIDE = 'is reached by a server of its network at its private addresses, by both protocols'

/** The file and the name of the test that sends packets there. */
const PROVEN: Readonly<Record<string, readonly [file: string, name: string]>> = {
  ...Object.fromEntries(Object.keys(LOOPED).map((field) => [field, [LOOP, EACH] as const])),
  'credentials.host': [DATABASE, 'shows its password once it runs, with its own host, for clients that verify'],
  'server.public_ipv4': [PUBLIC, GUESTS],
  'server.public_ipv6': [PUBLIC, GUESTS],
  'server.parts.interfaces.ipv4_address': [PRIVATE, RESOLVER],
  'server.parts.interfaces.ipv6_address': [PRIVATE, BETWEEN],
  // nodes are servers
  'node_pool.nodes.public_ipv4': [PUBLIC, GUESTS],
  'node_pool.nodes.public_ipv6': [PUBLIC, GUESTS],
  'server.ssh_command': [PRODUCT, 'are entered by ssh and scp through the twin'],
  'server.ssh.host': [PRODUCT, 'are entered by ssh and scp through the twin'],
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
  'load_balancer.private_ipv4': [OUTSIDE, INSIDE],
  'load_balancer.private_ipv6': [OUTSIDE, INSIDE],
  'edge.bastion_jump_host': [EDGE, 'forwards who has a key to servers of the network, and lets nobody else in'],
  'edge.dns64_address': [EDGE, 'answers names that have IPv4 only with addresses that it translates'],
  'kubernetes_cluster.endpoint': [CLUSTER, ENTERED],
  'kubernetes_cluster.endpoint_ipv4': [CLUSTER, ENTERED],
  'playground.endpoint': [PLAYGROUND, READY],
  'active.endpoint': [PLAYGROUND, READY],
  'dev_cluster.endpoint': [DEV_CLUSTER, 'its API answers at both endpoints'],
  'dev_cluster.endpoint_ipv4': [DEV_CLUSTER, 'its API answers at both endpoints'],
  'dev_cluster.ipv4_address': [DEV_CLUSTER, 'its ingress answers for what runs there, at both addresses'],
  'dev_cluster.ipv6_address': [DEV_CLUSTER, 'its ingress answers for what runs there, at both addresses'],
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
      return textsOf(root, root, []).map((text) => asItems(text, path))
    })
    .filter(isAddress),
)

test('every address that is shown has a test', () => {
  expect([...SHOWN].sort()).toEqual(Object.keys(PROVEN).sort())
})
describe('the proof of', () => {
  test.each(Object.entries(PROVEN))('%s is there', (_field, [file, name]) => {
    const quoted = [`'${name}'`, `"${name}"`]
    expect(quoted.some((text) => readFileSync(file, 'utf8').includes(text))).toBe(true)
  })
})
