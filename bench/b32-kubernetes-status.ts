/** Durable status patches, 16 in flight, each on a different object. */
import { Server } from '../resources/server/index.ts'
import { compare, draft, NAMESPACE } from './kubernetes.ts'
import { closedLoop } from './runner.ts'

const CLIENTS = 16

export const bench = compare(
  { name: 'B32 Kubernetes status patches', question: 'durable status patches, 16 in flight', unit: 'patches', goal: 1 },
  async ({ store }) => {
    const servers = await Promise.all(Array.from({ length: CLIENTS }, () => store.create(Server, draft())))
    let number = 0
    return {
      run: (seconds) =>
        closedLoop(CLIENTS, seconds, async (client) => {
          const name = servers[client]?.metadata.name ?? ''
          await store.patch(
            Server,
            { namespace: NAMESPACE, name },
            { status: { state: 'started', stateDetail: `change ${number++}` } },
            'status',
          )
        }),
    }
  },
)
