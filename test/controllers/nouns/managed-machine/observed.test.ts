/** What is read of a machine: its server, and what its host of now says. */
import { expect, test } from 'vitest'
import { openMachines } from '../../../../controllers/nouns/managed-machine/index.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import type { ResourceType } from '../../../../kit/kube/object.ts'

interface Kept {
  readonly metadata: { readonly name: string }
}
const SERVER = {
  metadata: { namespace: 'acct', name: 'machine-a', uid: 'u', creationTimestamp: '2026-01-01T00:00:00.000Z' },
  spec: { managedBy: 'database:shop', template: 'managed-database' },
}

function observed(status: object, nodes: readonly object[] = []) {
  const kept: Readonly<Record<string, readonly object[]>> = { Server: [{ ...SERVER, status }], Node: nodes }
  const of = ({ kind }: ResourceType) => ({
    addIndex: () => {},
    by: () => kept[kind] ?? [],
    // The test makes them.
    get: ({ name }: Kept['metadata']) =>
      (kept[kind] as Kept[] | undefined)?.find(({ metadata }) => metadata.name === name),
  })
  const caches = { of } as unknown as Parts['caches'] // all that is read of them
  return openMachines({ caches }, 'database').observe({ namespace: 'acct', id: 'shop' })[0]
}

test('its host may not answer', () => {
  const nodes = [
    { metadata: { name: 'host-1' }, status: { state: 'ready' } },
    {
      metadata: { name: 'host-2' },
      status: { state: 'unreachable', conditions: [{ type: 'Ready', lastTransitionTime: '2026-01-02T00:00:00Z' }] },
    },
  ]
  expect(observed({ nodeName: 'host-2', state: 'error' }, nodes)).toMatchObject({
    nodeState: 'unreachable',
    nodeSince: '2026-01-02T00:00:00Z',
  })
  expect(observed({ state: 'creating' }, nodes)?.nodeState).toBeUndefined()
})

test('it was started when its guest was, and again when it was moved', () => {
  const [startedAt, finishedAt] = ['2026-01-02T00:00:00.000Z', '2026-01-03T00:00:00.000Z']
  expect(observed({})?.startedAt).toBeUndefined()
  expect(observed({ startedAt })?.startedAt).toBe(startedAt)
  expect(observed({ startedAt, operation: { finishedAt } })?.startedAt).toBe(finishedAt)
  expect(observed({ startedAt: finishedAt, operation: { finishedAt: startedAt } })?.startedAt).toBe(finishedAt)
})
