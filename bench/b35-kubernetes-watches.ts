/** One change after the other, each delivered to 100 watches before the next: events delivered. */
import { Server } from '../resources/server/index.ts'
import { compare, draft, NAMESPACE } from './kubernetes.ts'
import { closedLoop } from './runner.ts'

const WATCHES = 100

export const bench = compare(
  {
    name: 'B35 Kubernetes watches',
    question: `status changes seen by ${WATCHES} watches each`,
    unit: 'events',
    goal: 1,
  },
  async ({ store }) => {
    const { metadata } = await store.create(Server, draft())
    const key = { namespace: NAMESPACE, name: metadata.name }
    const { resourceVersion } = await store.list(Server, { namespace: NAMESPACE })
    let [waiting, wanted, number] = [0, '', 0]
    let seen: (() => void) | undefined
    const follow = async () => {
      for await (const event of store.watch(Server, {
        namespace: NAMESPACE,
        resourceVersion,
        signal: new AbortController().signal,
      })) {
        if (event.type === 'BOOKMARK' || event.object.status?.stateDetail !== wanted) continue
        waiting -= 1
        if (waiting === 0) seen?.()
      }
    }
    // They end with the server's connections.
    for (let index = 0; index < WATCHES; index++) void follow().catch(() => {})
    const change = async () => {
      wanted = `change ${number++}`
      waiting = WATCHES
      const all = new Promise<void>((resolve) => (seen = resolve))
      await store.patch(Server, key, { status: { state: 'started', stateDetail: wanted } }, 'status')
      await all
    }
    await change()
    return {
      run: async (seconds) => {
        const { units, seconds: taken } = await closedLoop(1, seconds, change)
        return { units: units * WATCHES, seconds: taken }
      },
    }
  },
)
