/** Durable creations of a Server, 16 in flight. */
import { Server } from '../resources/server/index.ts'
import { compare, draft } from './kubernetes.ts'
import { closedLoop } from './runner.ts'

export const bench = compare(
  { name: 'B31 Kubernetes creates', question: 'durable creations of a Server, 16 in flight', unit: 'objects', goal: 1 },
  async ({ store }) => ({
    run: (seconds) => closedLoop(16, seconds, async () => void (await store.create(Server, draft()))),
  }),
)
