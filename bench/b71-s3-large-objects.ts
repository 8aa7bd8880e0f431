/** Large objects through the entrance of object storage, up and down, against its engine alone with its own TLS. */
import { openObjectStorages, type S3Side } from './object-storage.ts'
import { type Bench, median, type Side } from './runner.ts'

const MEBIBYTE = 1024 ** 2
const MEBIBYTES = { full: 128, short: 2 }

export const bench: Bench = {
  name: 'B71 S3 large objects',
  question: `an object of ${MEBIBYTES.full} MiB put and read again`,
  subjectName: 'the object storage of a zone',
  peerName: 'versitygw alone, with TLS',
  unit: 'MiB',
  goal: 0.9,
  tier: 'e2e',
  async open(round) {
    const stores = await openObjectStorages()
    const mebibytes = MEBIBYTES[round]
    const taken = { 'put, MiB/s': newTimes(), 'get, MiB/s': newTimes() }
    const sideOf = (side: 'subject' | 'peer', store: S3Side): Side => ({
      async run() {
        const shared = { bytes: mebibytes * MEBIBYTE, connections: 1, seconds: 0 }
        const put = await store.order({ do: 'put', ...shared })
        const get = await store.order({ do: 'get', ...shared })
        taken['put, MiB/s'][side].push(mebibytes / put.seconds)
        taken['get, MiB/s'][side].push(mebibytes / get.seconds)
        return { units: 2 * mebibytes, seconds: put.seconds + get.seconds }
      },
    })
    return {
      subject: sideOf('subject', stores.subject),
      peer: sideOf('peer', stores.peer),
      facts: () =>
        Object.fromEntries(
          Object.entries(taken).map(([what, { subject, peer }]) => [
            `${what}, against the engine alone`,
            `${median(subject).toFixed(0)} / ${median(peer).toFixed(0)}`,
          ]),
        ),
      close: stores.close,
    }
  },
}

const newTimes = () => ({ subject: [] as number[], peer: [] as number[] })
