/** The storage policy of pools in a Ceph cluster: how many copies they keep, and which failure domain separates the
 *  copies. Read and set through the program `ceph`, as a client that may do this and nothing else. */
import { z } from 'zod'
import type { StorageLogin } from '../fencing/storage-access.ts'
import { type CephProgram, openCephProgram, StorageRefused } from './program.ts'

export interface StoragePolicy {
  readonly replicas: number
  readonly failureDomain: 'host' | 'rack'
}

export interface PoolState {
  /** The name that nodes use: the id of the cluster, and the pool's name. */
  readonly name: string
  readonly replicas: number
  /** What no two copies share, in the cluster's words. */
  readonly failureDomain: string
  /** Hosts with at least one daemon that is up and stores data of such a pool. */
  readonly hosts: number
  readonly racks: number
  /** Placement groups whose copies are not all in place yet. */
  readonly misplacedGroups: number
}

export interface CephPools {
  /** The pools of these names that exist in the cluster. Throws StorageAccessFailed. */
  read(names: readonly string[]): Promise<readonly PoolState[]>
  /** Resolves when the cluster has recorded the policy for all of the pools; the cluster then moves the data by itself.
   *  Does nothing for a pool that has the policy already. Throws StorageRefused, before anything is changed, when there
   *  are too few hosts or racks, and StorageAccessFailed. */
  set(names: readonly string[], policy: StoragePolicy): Promise<void>
}

const REPLICATED = 1
const Pools = z.array(
  z.looseObject({
    pool_id: z.int(),
    pool_name: z.string(),
    type: z.int(),
    size: z.int(),
    min_size: z.int(),
    crush_rule: z.int(),
  }),
)
const Rules = z.array(
  z.looseObject({
    rule_id: z.int(),
    rule_name: z.string(),
    steps: z.array(z.looseObject({ op: z.string(), item_name: z.string().optional(), type: z.string().optional() })),
  }),
)
const Tree = z.looseObject({
  nodes: z.array(
    z.looseObject({
      id: z.int(),
      name: z.string(),
      type: z.string(),
      children: z.array(z.int()).optional(),
      device_class: z.string().optional(),
      status: z.string().optional(),
      reweight: z.number().optional(),
    }),
  ),
})
const Groups = z.array(z.looseObject({ pgid: z.string(), state: z.string(), acting: z.array(z.int()) }))
const GroupsAnswer = z.union([Groups, z.looseObject({ pg_stats: Groups }).transform(({ pg_stats }) => pg_stats)])

type Pool = z.infer<typeof Pools>[number]
type TreeNode = z.infer<typeof Tree>['nodes'][number]

/** What a pool is spread over, by its CRUSH rule. */
interface Spread {
  readonly root: string
  readonly deviceClass: string | undefined
  readonly failureDomain: string
}

interface Cluster {
  readonly id: string
  readonly pools: readonly Pool[]
  spreadOf(pool: Pool): Spread
  /** The bucket of this type that contains the daemon; undefined when none does. */
  bucketOf(daemon: number, type: string): string | undefined
  /** Daemons below the root that are up and accept data. */
  daemonsOf(spread: Spread): readonly number[]
}

export function openCephPools(login: StorageLogin, program?: string): CephPools {
  const run = openCephProgram(login, program)
  return {
    async read(names) {
      const cluster = await readCluster(run)
      const groups = GroupsAnswer.parse(JSON.parse(await run('pg', 'dump', 'pgs_brief', '--format', 'json')))
      return wantedOf(cluster, names).map((pool) => stateOf(cluster, pool, groups))
    },
    async set(names, policy) {
      const cluster = await readCluster(run)
      const wanted = wantedOf(cluster, names)
      for (const pool of wanted) requirePossible(cluster, pool, policy)
      for (const pool of wanted) await setOne(run, cluster.spreadOf(pool), pool, policy)
    },
  }
}

const nameOf = ({ id }: Cluster, pool: Pool): string => `${id}.${pool.pool_name}`
const wantedOf = (cluster: Cluster, names: readonly string[]): readonly Pool[] =>
  cluster.pools.filter((pool) => names.includes(nameOf(cluster, pool)))

async function readCluster(run: CephProgram): Promise<Cluster> {
  const [id, pools, rules, tree] = [
    (await run('fsid')).trim(),
    Pools.parse(JSON.parse(await run('osd', 'pool', 'ls', 'detail', '--format', 'json'))),
    Rules.parse(JSON.parse(await run('osd', 'crush', 'rule', 'dump', '--format', 'json'))),
    Tree.parse(JSON.parse(await run('osd', 'tree', '--format', 'json'))).nodes,
  ]
  const parents = new Map(tree.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)))
  const ancestors = (id: number): readonly TreeNode[] => {
    const parent = parents.get(id)
    return parent === undefined ? [] : [parent, ...ancestors(parent.id)]
  }
  return {
    id,
    pools,
    spreadOf: ({ crush_rule }) => spreadOf(rules.find(({ rule_id }) => rule_id === crush_rule)),
    bucketOf: (daemon, type) => ancestors(daemon).find((node) => node.type === type)?.name,
    daemonsOf: ({ root, deviceClass }) =>
      tree
        .filter(
          (node) =>
            node.type === 'osd' &&
            node.status === 'up' &&
            node.reweight !== 0 &&
            (deviceClass === undefined || node.device_class === deviceClass) &&
            ancestors(node.id).some(({ name }) => name === root),
        )
        .map((node) => node.id),
  }
}

/** The step `take` names the root and, after a tilde, the device class; the step that chooses names the failure
 *  domain. */
function spreadOf(rule: z.infer<typeof Rules>[number] | undefined): Spread {
  const [root = 'default', deviceClass] = rule?.steps.find(({ op }) => op === 'take')?.item_name?.split('~') ?? []
  const failureDomain = rule?.steps.find(({ op }) => op.startsWith('choose'))?.type ?? 'osd'
  return { root, deviceClass, failureDomain }
}

const countOf = (cluster: Cluster, spread: Spread, type: string): number =>
  new Set(cluster.daemonsOf(spread).flatMap((daemon) => cluster.bucketOf(daemon, type) ?? [])).size

/** A group is in place when it is clean, and has a copy in as many failure domains as the pool must have copies. Its
 *  report may be some seconds old: it describes the copies under the rule of that time. */
function stateOf(cluster: Cluster, pool: Pool, groups: z.infer<typeof Groups>): PoolState {
  const spread = cluster.spreadOf(pool)
  const { failureDomain } = spread
  const domainOf = (daemon: number) =>
    failureDomain === 'osd' ? String(daemon) : cluster.bucketOf(daemon, failureDomain)
  const isPlaced = ({ state, acting }: z.infer<typeof Groups>[number]): boolean =>
    state.split('+').includes('active') &&
    state.split('+').includes('clean') &&
    acting.length === pool.size &&
    new Set(acting.map(domainOf)).size === pool.size
  return {
    name: nameOf(cluster, pool),
    replicas: pool.size,
    failureDomain,
    hosts: countOf(cluster, spread, 'host'),
    racks: countOf(cluster, spread, 'rack'),
    misplacedGroups: groups.filter((group) => group.pgid.startsWith(`${pool.pool_id}.`) && !isPlaced(group)).length,
  }
}

function requirePossible(cluster: Cluster, pool: Pool, { replicas, failureDomain }: StoragePolicy): void {
  if (pool.type !== REPLICATED)
    throw new StorageRefused(`Pool ${pool.pool_name} is erasure-coded: it keeps parts and no copies.`)
  const count = countOf(cluster, cluster.spreadOf(pool), failureDomain)
  if (count < replicas)
    throw new StorageRefused(
      `Pool ${pool.pool_name} has ${count} of kind ${failureDomain} with storage that is up; ${replicas} copies need ` +
        'as many.',
    )
}

async function setOne(
  run: CephProgram,
  { root, deviceClass, failureDomain: before }: Spread,
  { pool_name: pool, size, min_size }: Pool,
  { replicas, failureDomain }: StoragePolicy,
): Promise<void> {
  const setTo = (field: string, value: string, ...more: readonly string[]) =>
    run('osd', 'pool', 'set', pool, field, value, ...more)
  if (before !== failureDomain) {
    const rule = ['svccloud', root, failureDomain, ...(deviceClass === undefined ? [] : [deviceClass])].join('-')
    const kind = [root, failureDomain, ...(deviceClass === undefined ? [] : [deviceClass])]
    await run('osd', 'crush', 'rule', 'create-replicated', rule, ...kind)
    await setTo('crush_rule', rule)
  }
  // The cluster's own default: more than half of the copies, and one where there are two.
  const least = replicas - Math.floor(replicas / 2)
  if (min_size > replicas) await setTo('min_size', String(least))
  if (size !== replicas) await setTo('size', String(replicas), ...(replicas === 1 ? ['--yes-i-really-mean-it'] : []))
  if (min_size !== least) await setTo('min_size', String(least))
}
