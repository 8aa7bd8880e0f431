import { expect, test } from 'vitest'
import { openAlarms } from '../../controllers/alarms.ts'
import type { NodeObject } from '../../controllers/nouns/node/observed.ts'
import type { OperationObject } from '../../controllers/kit/operation/record.ts'
import type { ServerObject } from '../../controllers/nouns/server/observed.ts'
import { openRegistry } from '../../kit/sys/metrics.ts'
import { node } from './nouns/node/worlds.ts'
import { ended, NOW, started } from './nouns/server/worlds.ts'

const AT = NOW.toISOString()

const moved = (...kinds: readonly string[]): OperationObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Operation',
  metadata: { name: 'op-1', namespace: 'a' },
  spec: {
    kind: 'server.migrate',
    target: { type: 'server', id: 'web' },
    actor: 'operator',
    requestId: 'r',
    createdAt: AT,
    deadlineAt: AT,
    stepCount: 4,
  },
  status: {
    status: 'succeeded',
    step: 'cleaned',
    stepIndex: 4,
    error: '',
    finishedAt: AT,
    events: kinds.map((kind) => ({ at: AT, kind, message: '' })),
  },
})

test(
  'nodes are counted by state, deletions that do not come to their end,' +
    ' and moves whose guest stood still too long',
  async () => {
    const registry = openRegistry({ isProcessWide: false })
    const nodes: NodeObject[] = []
    const servers: ServerObject[] = []
    const operations: OperationObject[] = []
    const unowned = new Map<string, number>()
    const waiting = new Map<string, number>()
    const watched = {
      nodes: () => nodes,
      servers: () => servers,
      operations: () => operations,
      unowned: () => unowned,
      sweepsWaiting: () => waiting,
    }
    const alarms = openAlarms(watched, registry, { now: () => new Date('2026-01-01T01:00:00Z') })
    const linesOf = async () =>
      (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_') && !line.endsWith(' 0'))
    expect(await linesOf()).toEqual([])

    const deleting = (status: 'running' | 'failed') =>
      started({ status: { state: 'deleting', operation: { ...ended('server.delete', 'op-1').progress, status } } })
        .server
    nodes.push(node(), node({ state: 'ready' }), node({ state: 'unreachable' }), node({ state: 'unreachable' }))
    servers.push(started().server, deleting('running'), deleting('failed'))
    operations.push(moved('handed_over'), moved('handed_over', 'downtime_exceeded'))
    expect(await linesOf()).toEqual([
      'svccloud_nodes{state="provisioning"} 1',
      'svccloud_nodes{state="ready"} 1',
      'svccloud_nodes{state="unreachable"} 2',
      'svccloud_deletions_overdue 1',
      'svccloud_downtimes_exceeded 1',
    ])

    alarms.noteSweep({ resolved: 3, unknown: 2 })
    expect(await linesOf()).toContain('svccloud_change_intents_unknown 2')
    alarms.noteSweep({ resolved: 0, unknown: 0 })
    expect(await linesOf()).not.toContain('svccloud_change_intents_unknown 2')

    waiting.set('Storage', 7)
    expect(await linesOf()).toContain('svccloud_sweeps_waiting{kind="Storage"} 7')
    waiting.clear()
    expect((await linesOf()).filter((line) => line.startsWith('svccloud_sweeps_waiting'))).toEqual([])

    unowned.set('Volume', 2)
    alarms.noteClaims({ released: 1, lost: { Server: 4, Storage: 0 }, isStopped: true })
    expect(await linesOf()).toEqual(
      expect.arrayContaining([
        'svccloud_unowned{kind="Volume"} 2',
        'svccloud_claims_lost{kind="Server"} 4',
        'svccloud_sweeps_stopped 1',
      ]),
    )

    alarms.noteKubeconfigs({ count: 3, since: new Date('2026-01-01T00:50:00Z') })
    expect(await linesOf()).toEqual(
      expect.arrayContaining(['svccloud_kubeconfigs_awaiting 3', 'svccloud_kubeconfigs_awaiting_seconds 600']),
    )

    alarms.noteDeliveries({ pending: 5, lateSeconds: 7, paused: 1 })
    expect(await linesOf()).toEqual(
      expect.arrayContaining([
        'svccloud_webhook_deliveries_pending 5',
        'svccloud_webhook_delivery_late_seconds 7',
        'svccloud_webhooks_paused 1',
      ]),
    )

    alarms.noteAuditSinks({ lateSeconds: 9, failing: 2 })
    expect(await linesOf()).toEqual(
      expect.arrayContaining(['svccloud_audit_sink_late_seconds 9', 'svccloud_audit_sinks_failing 2']),
    )

    alarms.noteCheckpoint(new Date('2026-01-01T00:00:00Z'))
    expect(await linesOf()).toContain('svccloud_audit_checkpoint_age_seconds 3600')

    nodes.splice(2)
    expect(await linesOf()).not.toContain('svccloud_nodes{state="unreachable"} 2')
  },
)
