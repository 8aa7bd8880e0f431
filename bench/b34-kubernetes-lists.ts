/** Lists of 2 000 objects, two at a time, pages followed as the client does. */
import { Server } from '../resources/server/index.ts'
import { compare, LISTED_OBJECTS } from './kubernetes.ts'
import { closedLoop } from './runner.ts'

export const bench = compare(
  {
    name: 'B34 Kubernetes lists',
    question: `lists of ${LISTED_OBJECTS.full} Servers, two at a time`,
    unit: 'lists',
    goal: 1,
  },
  async ({ store, listed, listedObjects }) => ({
    run: (seconds) =>
      closedLoop(2, seconds, async () => {
        const { items } = await store.list(Server, { namespace: listed })
        if (items.length !== listedObjects) throw new Error(`the list has ${items.length} objects`)
      }),
  }),
)
