/** Small objects through the entrance of object storage, against its engine alone with its own TLS: the same program,
 *  the same client in a separate process. */
import { openObjectStorages, type S3Side } from './object-storage.ts'
import { processorMicrosecondsOf } from './processor.ts'
import { type Bench, percentile, type Side } from './runner.ts'

const BYTES = 4_096
const CONNECTIONS = { full: 16, short: 2 }
/** Client, entrance and engine share the processors with other programs: a single pair says little. */
const PAIRS = 21

export const bench: Bench = {
  name: 'B70 S3 small puts',
  question: `puts of objects of ${BYTES / 1_024} KiB, ${CONNECTIONS.full} in flight`,
  subjectName: 'the object storage of a zone',
  peerName: 'versitygw alone, with TLS',
  unit: 'puts',
  goal: 0.75,
  pairs: PAIRS,
  tier: 'e2e',
  async open(round) {
    const stores = await openObjectStorages()
    const taken = { subject: [] as number[], peer: [] as number[] }
    let doorMicroseconds = 0
    const sideOf = (side: keyof typeof taken, store: S3Side): Side => ({
      async run(seconds) {
        const before = await processorMicrosecondsOf([stores.door])
        const done = await store.order({ do: 'put', bytes: BYTES, connections: CONNECTIONS[round], seconds })
        if (side === 'subject') doorMicroseconds += (await processorMicrosecondsOf([stores.door])) - before
        taken[side].push(...done.milliseconds)
        return done
      },
    })
    return {
      subject: sideOf('subject', stores.subject),
      peer: sideOf('peer', stores.peer),
      facts: () => ({
        'ms of a put, p99': percentile(taken.subject, 0.99).toFixed(1),
        'by the engine alone': percentile(taken.peer, 0.99).toFixed(1),
        'ms of processor of the interface, a put': (doorMicroseconds / 1_000 / taken.subject.length).toFixed(3),
      }),
      close: stores.close,
    }
  },
}
