/** A restart of the embedded API with 100 000 objects: until it serves, against reading and parsing its files once;
 *  and, as facts, its duration in seconds and the memory of an object. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openClient } from '../kit/kube/client.ts'
import { installCrds } from '../kit/kube/crd.ts'
import { crds } from '../controllers/kit/crds.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { readKubeconfig } from '../kit/kube/kubeconfig.ts'
import { Namespace } from '../kit/kube/object.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { draft, NAMESPACE, startEmbedded } from './kubernetes.ts'
import { type Bench, median, repeat } from './runner.ts'

const OBJECTS = { full: 100_000, short: 100 }
const IN_FLIGHT = 64
const KIBIBYTE = 1024

export const bench: Bench = {
  name: 'B36 Kubernetes restart',
  question: `the embedded API until it serves ${OBJECTS.full} Servers`,
  subjectName: 'start to ready',
  peerName: 'reading and parsing its files',
  unit: 'objects',
  goal: 0.6,
  heldBy:
    'half of the time is the start of Node and the loading of modules, and the parsing of each object once more to ' +
    'check its shape and to index it.',
  tier: 'database',
  async open(round) {
    const objects = OBJECTS[round]
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
    const emptyBytes = await seed(folder, objects)
    const starts: number[] = []
    const sizes: number[] = []
    return {
      subject: {
        run: (seconds) =>
          repeat(objects, seconds, async () => {
            const began = clock.monotonicMilliseconds()
            const server = await startEmbedded(folder)
            starts.push((clock.monotonicMilliseconds() - began) / 1_000)
            sizes.push(await residentBytes(server.pid))
            await server.stop()
          }),
      },
      peer: { run: (seconds) => repeat(objects, seconds, () => parseFiles(join(folder, 'log'))) },
      facts: () => ({
        'seconds from start to ready': median(starts).toFixed(2),
        'KiB of memory per object': ((median(sizes) - emptyBytes) / objects / KIBIBYTE).toFixed(1),
        'KiB of memory when empty': (emptyBytes / KIBIBYTE).toFixed(0),
      }),
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}

/** Fills the folder; returns the memory of a server that has only the definitions. */
async function seed(folder: string, objects: number): Promise<number> {
  const first = await startEmbedded(folder)
  const { transport, close } = openHttpsTransport(await readKubeconfig(first.kubeconfig, clock))
  const store = openClient({ transport, fieldManager: 'bench', clock, random })
  await installCrds(store, crds(), clock)
  await store.create(Namespace, { metadata: { name: NAMESPACE }, spec: undefined })
  const emptyBytes = await residentBytes(first.pid)
  let made = 0
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (made++ < objects) await store.create(Server, draft())
    }),
  )
  await close()
  await first.stop()
  return emptyBytes
}

const residentBytes = async (pid: number): Promise<number> =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * KIBIBYTE

/** The minimum that a start needs; the objects are released. */
async function parseFiles(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^(snapshot|log)-/.test(name)) continue
    const bytes = await readFile(join(folder, name))
    for (let start = 0, end; (end = bytes.indexOf(10, start)) >= 0; start = end + 1)
      JSON.parse(bytes.toString('utf8', bytes.indexOf(32, start) + 1, end))
  }
}
