/** Pools of nodes of a cluster, and its snapshots. */
import { Plus } from 'lucide-react'
import type { ReactNode } from 'react'
import type { KubernetesCluster, KubernetesClusterSnapshot, KubernetesNodePool } from '../../../client/schema.ts'
import { useRead } from '../../api/cache.ts'
import type { OperationId } from '../../api/operations.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { bytes, number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { kindText } from '../../texts/service.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Facts, Loading, Panel, Row, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { type Look, State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { type Question, useQuestion } from '../ask.tsx'
import { labelOf } from '../fields.tsx'
import { usePlans } from '../options.ts'
import { Time, Value, wordOf } from '../value.tsx'

interface ClusterProps {
  readonly item: KubernetesCluster
}

const READS: readonly OperationId[] = ['get_kubernetes_cluster', 'list_kubernetes_clusters', 'list_operations']

export function PoolsTab({ item }: ClusterProps): ReactNode {
  // lists have none of them
  if (item.node_pools === undefined) return <Loading />
  return <Pools item={item} pools={item.node_pools} />
}

interface PoolsProps extends ClusterProps {
  readonly pools: readonly KubernetesNodePool[]
}

function Pools({ item, pools }: PoolsProps): ReactNode {
  const [ask, dialog] = useQuestion(READS)
  const may = useMay()
  const texts = t().pools
  return (
    <Stack>
      <Between>
        <p className="soft">{texts.note}</p>
        {may('create_kubernetes_node_pool') ? (
          <Button kind="primary" icon={<Plus aria-hidden="true" />} onPress={() => ask(additionTo(item))}>
            {t().actions.create_kubernetes_node_pool}
          </Button>
        ) : null}
      </Between>
      {pools.length === 0 ? (
        <Panel>
          <Soft>{texts.none}</Soft>
        </Panel>
      ) : (
        <Table
          label={texts.title}
          items={pools}
          columns={[
            ...columnsOfPools(),
            {
              id: 'actions',
              name: t().list.actions,
              isEnd: true,
              cell: (pool) => <PoolActions cluster={item} pool={pool} ask={ask} />,
            },
          ]}
        />
      )}
      <Nodes pools={pools} />
      {dialog}
    </Stack>
  )
}

const additionTo = ({ id }: KubernetesCluster): Question => ({
  operation: 'create_kubernetes_node_pool',
  path: { id },
  title: t().actions.create_kubernetes_node_pool,
  button: t().actions.create_kubernetes_node_pool,
  fields: [
    { name: 'name' },
    { name: 'plan', as: 'cards', useOptions: usePlans },
    { name: 'count' },
    { name: 'public_ipv4', isMore: true },
    { name: 'labels', isMore: true },
  ],
  initial: { count: 1 },
  isPriced: true,
})

const columnsOfPools = (): readonly Column<KubernetesNodePool>[] => [
  { id: 'name', name: t().fields.name, cell: ({ name }) => name },
  { id: 'state', name: t().fields.state, cell: ({ state }) => <State look={lookOf(state)}>{wordOf(state)}</State> },
  { id: 'plan', name: t().fields.plan, cell: ({ plan }) => plan },
  { id: 'version', name: t().fields.version, cell: ({ version }) => version },
  {
    id: 'ready',
    name: t().pools.ready,
    cell: ({ nodes, count }) => `${number(nodes.filter((node) => node.is_ready).length)} / ${number(count)}`,
    isEnd: true,
  },
]

const lookOf = (state: KubernetesNodePool['state']): Look =>
  state === 'running' ? 'good' : state === 'error' ? 'bad' : 'busy'

interface PoolActionsProps {
  readonly cluster: KubernetesCluster
  readonly pool: KubernetesNodePool
  readonly ask: (question: Question) => void
}

function PoolActions({ cluster, pool, ask }: PoolActionsProps): ReactNode {
  const may = useMay()
  const texts = t().pools
  const { scale, roll, remove } = questionsOf(cluster, pool)
  const busy = pool.active_operation === null ? undefined : t().page.busy(kindText(pool.active_operation.kind))
  if (!may('update_kubernetes_node_pool')) return '–'
  return (
    <Row>
      <Button
        kind="quiet"
        why={busy ?? (pool.autoscaling === null ? undefined : texts.isScaled)}
        onPress={() => ask(scale)}
      >
        {texts.scale}
      </Button>
      {pool.version === cluster.version ? null : (
        <Button kind="quiet" why={busy} onPress={() => ask(roll)}>
          {texts.roll}
        </Button>
      )}
      {may('delete_kubernetes_node_pool') ? (
        <Button kind="quiet" why={busy} onPress={() => ask(remove)}>
          {texts.remove}
        </Button>
      ) : null}
    </Row>
  )
}

function questionsOf(
  { id, version }: KubernetesCluster,
  pool: KubernetesNodePool,
): Readonly<Record<'scale' | 'roll' | 'remove', Question>> {
  const texts = t().pools
  const path = { id, node_pool_id: pool.id }
  const of = (button: string): Pick<Question, 'path' | 'title' | 'button'> => ({
    path,
    title: t().choices.confirm(button, pool.name),
    button,
  })
  return {
    scale: {
      ...of(texts.scale),
      operation: 'update_kubernetes_node_pool',
      fields: [{ name: 'count', isNeeded: true }],
      initial: { count: pool.count },
      isPriced: true,
    },
    roll: {
      ...of(texts.roll),
      operation: 'update_kubernetes_node_pool',
      text: texts.rollNote(pool.max_unavailable),
      bodyOf: () => ({ version }),
    },
    remove: {
      ...of(texts.remove),
      operation: 'delete_kubernetes_node_pool',
      goes: [texts.goesNodes(pool.count)],
      type: pool.name,
    },
  }
}

function Nodes({ pools }: { readonly pools: readonly KubernetesNodePool[] }): ReactNode {
  const nodes = pools.flatMap(({ name, nodes: each }) =>
    each.map((node) => ({ ...node, id: node.server_id, pool: name })),
  )
  if (nodes.length === 0) return null
  return (
    <Panel title={t().pools.nodes} isBare>
      <Table
        label={t().pools.nodes}
        items={nodes}
        columns={[
          { id: 'hostname', name: t().fields.hostname, cell: ({ hostname }) => hostname },
          {
            id: 'ready',
            name: t().fields.state,
            cell: ({ is_ready: isReady, state }) => <State look={isReady ? 'good' : 'busy'}>{wordOf(state)}</State>,
          },
          { id: 'pool', name: t().pools.pool, cell: ({ pool }) => pool },
          { id: 'version', name: 'kubelet', cell: ({ kubelet_version: version }) => version },
          { id: 'zone', name: t().fields.zone, cell: ({ zone }) => zone },
          {
            id: 'ip',
            name: t().fields.address,
            cell: (node) => <Value field="ip" value={node.public_ipv4 ?? node.public_ipv6} />,
          },
        ]}
      />
    </Panel>
  )
}

export function SnapshotsTab({ item }: ClusterProps): ReactNode {
  const [ask, dialog] = useQuestion(READS)
  const may = useMay()
  const { data, error } = useRead(
    'list_kubernetes_cluster_snapshots',
    { path: { id: item.id } },
    { isAlwaysStale: true },
  )
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = t().pools
  const restore = (snapshot: KubernetesClusterSnapshot): void =>
    ask({
      operation: 'restore_kubernetes_cluster',
      path: { id: item.id },
      title: t().choices.confirm(texts.restore, item.name),
      button: texts.restore,
      bodyOf: () => ({ snapshot_id: snapshot.id }),
      goes: [texts.goesNewer],
      stays: [texts.staysVolumes],
      type: item.name,
    })
  return (
    <Stack>
      {data.items.length === 0 ? (
        <Panel>
          <Soft>{texts.noSnapshots}</Soft>
        </Panel>
      ) : (
        <Table
          label={t().nouns.snapshot.many}
          items={data.items}
          columns={[
            { id: 'at', name: t().fields.created_at, cell: ({ created_at: at }) => <Time instant={at} /> },
            { id: 'kind', name: t().fields.kind, cell: ({ kind }) => wordOf(kind) },
            { id: 'version', name: t().fields.kubernetes_version, cell: (each) => each.kubernetes_version },
            { id: 'size', name: t().fields.size_gibibytes, cell: ({ size_bytes: size }) => bytes(size), isEnd: true },
            {
              id: 'expires',
              name: t().fields.expires_at,
              cell: ({ expires_at: at }) => (at === null ? '–' : <Time instant={at} />),
            },
            {
              id: 'restore',
              name: t().list.actions,
              isEnd: true,
              cell: (snapshot) =>
                may('restore_kubernetes_cluster') ? (
                  <Button
                    kind="quiet"
                    why={
                      item.active_operation === null ? undefined : t().page.busy(kindText(item.active_operation.kind))
                    }
                    onPress={() => restore(snapshot)}
                  >
                    {texts.restore}
                  </Button>
                ) : (
                  '–'
                ),
            },
          ]}
        />
      )}
      {dialog}
    </Stack>
  )
}

/** Registration in the platform, with why it is as it is. */
export function PlatformTab({ item: { id, platform } }: ClusterProps): ReactNode {
  const [ask, dialog] = useQuestion(READS)
  const may = useMay()
  const texts = t().pools
  return (
    <Panel title={texts.platform}>
      <Stack>
        <Facts
          facts={Object.entries(platform)
            .filter(([, value]) => typeof value === 'string' && value !== '')
            .map(([name, value]) => ({ name: labelOf(name), value: <Value field={name} value={value} /> }))}
        />
        <Row>
          {(['register_kubernetes_cluster_in_platform', 'remove_kubernetes_cluster_from_platform'] as const)
            .filter((operation) => may(operation))
            .map((operation) => (
              <Button
                key={operation}
                onPress={() =>
                  ask({
                    operation,
                    path: { id },
                    title: texts.platformActions[operation],
                    button: texts.platformActions[operation],
                  })
                }
              >
                {texts.platformActions[operation]}
              </Button>
            ))}
        </Row>
        {dialog}
      </Stack>
    </Panel>
  )
}
