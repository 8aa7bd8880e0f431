/** The part of the platform's API that the cloud controller calls, with the rules that it relies on: names are taken
 *  once, configurations have generations, making and deleting take their time. */
import { type Client, createClient, type Schemas } from '../../../client/index.ts'
import { defined } from '../../../domain/defined.ts'
import { newServer } from './objects.ts'

type Balancer = Schemas['LoadBalancer']

export interface SimulatedPlatform {
  readonly client: Client
  readonly balancers: Map<string, Balancer>
  /** Hosts of the one pool. */
  nodes: number
  isLeaving: boolean
  /** It lets nobody in. */
  isClosed: boolean
  /** What the next request that makes one is refused with. */
  refusal: { readonly status: number; readonly detail: string } | undefined
  /** Before and after each request that changes something. */
  disturb: (when: 'before' | 'after') => void
  /** What is under way ends. */
  settle(how?: 'well' | 'badly'): void
}

const json = (status: number, body: unknown): Response =>
  new Response(body === undefined ? null : JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json' },
  })
const refused = (status: number, detail: string, reason?: string): Response =>
  json(status, { title: 'Refused', status, detail, ...defined({ reason }) })

export function openSimulatedPlatform(): SimulatedPlatform {
  const balancers = new Map<string, Balancer>()
  let made = 0
  const platform: SimulatedPlatform = {
    client: createClient({ url: 'http://platform', fetch: (request) => answer(request) }),
    balancers,
    nodes: 2,
    isLeaving: false,
    isClosed: false,
    refusal: undefined,
    disturb() {},
    settle(how = 'well') {
      for (const [id, balancer] of balancers) {
        if (balancer.state === 'deleting') balancers.delete(id)
        if (balancer.state !== 'creating') continue
        if (how === 'badly') balancers.set(id, { ...balancer, state: 'error', health_detail: 'no host' })
        else balancers.set(id, { ...balancer, state: 'running', ...addressesOf(balancer) })
      }
    },
  }

  async function answer(request: Request): Promise<Response> {
    const isChange = request.method !== 'GET'
    if (isChange) platform.disturb('before')
    const response = await route(request)
    if (isChange) platform.disturb('after')
    return response
  }

  async function route(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    const [, , noun = '', id = '', part] = pathname.split('/')
    if (platform.isClosed) return refused(401, 'The token of a cluster is invalid or expired.')
    if (noun === 'kubernetes-clusters') return json(200, { kubernetes_cluster: clusterOf(id, platform) })
    if (noun === 'servers') return json(200, { items: interfacesOf(id) })
    if (id === '' && request.method === 'GET') return json(200, list(searchParams.getAll('label')))
    if (id === '') return create((await request.json()) as Schemas['CreateLoadBalancer'])
    const balancer = balancers.get(id)
    if (balancer === undefined) return refused(404, 'There is no such load balancer.')
    if (part === 'configuration') return configure(balancer, (await request.json()) as Configuration)
    if (request.method === 'GET') return json(200, { load_balancer: balancer })
    if (balancer.is_protected) return refused(409, 'The load balancer is protected.', 'protected')
    balancers.set(id, { ...balancer, state: 'deleting' })
    return json(202, { load_balancer: balancer, operation: { id: 'o' } })
  }

  function list(labels: readonly string[]): object {
    const items = [...balancers.values()].filter((balancer) =>
      labels.every((label) => Object.entries(balancer.labels).some((entry) => entry.join('=') === label)),
    )
    return { items: items.map(({ frontends: _f, backends: _b, ...summary }) => summary), next_cursor: null }
  }

  function create(body: Schemas['CreateLoadBalancer']): Response {
    if (platform.refusal !== undefined) return refused(platform.refusal.status, platform.refusal.detail)
    if ([...balancers.values()].some(({ name }) => name === body.name))
      return refused(409, 'The name is taken.', 'name_taken')
    const balancer = newBalancer(`lb-${++made}`, body)
    balancers.set(balancer.id, balancer)
    return json(202, { load_balancer: balancer, operation: { id: 'o' } })
  }

  function configure(balancer: Balancer, body: Configuration): Response {
    if (body.configuration_generation !== balancer.configuration_generation)
      return refused(409, 'Another generation.', 'state_not_allowed')
    const { configuration_generation: generation, frontends, backends } = body
    const withIds = backends.map((backend) => ({
      ...backend,
      members: backend.members.map((member) => ({ ...member, id: `m-${member.name}`, is_healthy: null })),
    }))
    const next = { ...balancer, frontends, backends: withIds, configuration_generation: generation + 1 }
    balancers.set(balancer.id, next)
    return json(200, { load_balancer: next })
  }

  return platform
}

type Configuration = Pick<Balancer, 'frontends' | 'backends' | 'configuration_generation'>

export const newBalancer = (id: string, body: Partial<Schemas['CreateLoadBalancer']> = {}): Balancer => ({
  id,
  zone: 'eu-1a',
  name: body.name ?? id,
  network_id: 'n1',
  plan: body.plan ?? 'smallest',
  state: 'creating',
  is_healthy: false,
  health_detail: '',
  // Until it runs it shows nothing but what it was asked for, which the simulation keeps here.
  public_ipv4: null,
  public_ipv6: null,
  private_ipv4: null,
  private_ipv6: null,
  nodes: [],
  configuration_generation: 1,
  is_configuration_applied: false,
  labels: { ...body.labels, ...(body.public_ipv4 === false ? { internal: 'true' } : {}) },
  is_protected: false,
  managed_by: null,
  active_operation: null,
  created_at: '2026-01-01T00:00:00Z',
  frontends: [],
  backends: [],
  certificates: [],
})

const addressesOf = ({ labels }: Balancer) => ({
  private_ipv4: '10.1.0.5',
  private_ipv6: 'fd00::5',
  ...(labels['internal'] === 'true' ? {} : { public_ipv4: '198.51.100.5', public_ipv6: '2001:db8::5' }),
})

const clusterOf = (id: string, { nodes, isLeaving }: SimulatedPlatform): object => ({
  id,
  zone: 'eu-1a',
  network_id: 'n1',
  state: isLeaving ? 'deleting' : 'running',
  node_pools: [
    {
      nodes: Array.from({ length: nodes }, (_, number) => newServer(number)).map(({ hostname, serverId, zone }) => ({
        hostname,
        server_id: serverId,
        zone,
      })),
    },
  ],
})

const interfacesOf = (serverId: string): readonly object[] => [
  { network_id: null, ipv4_address: '198.51.100.77' },
  { network_id: 'n1', ipv4_address: newServer(Number(serverId.split('-').at(-1))).address },
]
