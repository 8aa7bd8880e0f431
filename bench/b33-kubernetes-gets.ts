/** Reads of one object, 16 in flight. */
import { Server } from '../resources/server/index.ts'
import { compare, draft, NAMESPACE } from './kubernetes.ts'
import { closedLoop } from './runner.ts'

export const bench = compare(
  { name: 'B33 Kubernetes gets', question: 'reads of one Server, 16 in flight', unit: 'reads', goal: 1 },
  async ({ store }) => {
    const { metadata } = await store.create(Server, draft())
    return {
      run: (seconds) =>
        closedLoop(
          16,
          seconds,
          async () => void (await store.get(Server, { namespace: NAMESPACE, name: metadata.name })),
        ),
    }
  },
)
