/** An HTTPS server and a name server on loopback addresses. 127.0.0.1 stands for the Internet, 127.0.0.2 for what is
 *  behind: the server listens on both, and counts who reached it there. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import { probePort } from '../../../../../embedded/kit/ports.ts'
import type { TestTrust } from '../../../../../integrations/public-internet/lookup.ts'
import { makeCertificate } from '../../../../../kit/sys/certificate.ts'
import { systemClock } from '../../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../../kit/sys/random.ts'

export const PUBLIC = '127.0.0.1'
export const INTERNAL = '127.0.0.2'

export interface HostileServer {
  readonly port: number
  readonly trust: TestTrust
  /** Connections that reached the internal address. */
  internalConnections(): number
  /** What the name server answers, question by question; the last answer stays. */
  answerNames(...addresses: readonly string[]): void
  close(): Promise<void>
}

export async function startHostileServer(listener: RequestListener): Promise<HostileServer> {
  const [now, random] = [systemClock.now(), systemRandom]
  const authority = await makeCertificate({ commonName: 'authority', days: 1, isAuthority: true, now, random })
  const { certificate: cert, key } = await makeCertificate({
    commonName: 'images.test',
    days: 1,
    hosts: ['images.test', 'other.test', PUBLIC, INTERNAL],
    authority,
    now,
    random,
  })
  let internal = 0
  const port = await probePort(PUBLIC, 0)
  const open = createServer({ cert, key }, listener)
  const behind = createServer({ cert, key }, listener).on('connection', () => internal++)
  await listen(open, port, PUBLIC)
  await listen(behind, port, INTERNAL)
  const names = await startNameServer()
  return {
    port,
    trust: { addresses: [PUBLIC], authorities: [authority.certificate], nameServer: `${PUBLIC}:${names.port}` },
    internalConnections: () => internal,
    answerNames: names.answer,
    async close() {
      open.closeAllConnections()
      behind.closeAllConnections()
      await Promise.all([open, behind].map((server) => new Promise((resolve) => server.close(resolve))))
      await names.close()
    },
  }
}

/** Rejects with the error of the listener. */
async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host)
  await once(server, 'listening')
}

const TYPE_A = 1
const TYPE_AAAA = 28

/** Answers every question for an IPv4 address; of IPv6, `::1` where it is among the addresses. */
async function startNameServer() {
  let answers: string[] = [PUBLIC]
  const socket = createSocket('udp4')
  socket.on('message', (question, { port, address }) => {
    const nameEnd = question.indexOf(0, 12) + 1
    const type = question.readUInt16BE(nameEnd)
    const given = ((type === TYPE_A && answers.length > 1 ? answers.shift() : answers[0]) ?? PUBLIC).split(' ')
    const records = given.flatMap((each) =>
      each === LOOPBACK
        ? type === TYPE_AAAA
          ? [LOOPBACK_BYTES]
          : []
        : type === TYPE_A && each !== ''
          ? [each.split('.').map(Number)]
          : [],
    )
    socket.send(answerTo(question.subarray(0, nameEnd + 4), type, records), port, address)
  })
  socket.bind(0, PUBLIC)
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    answer: (...addresses: readonly string[]) => void (answers = [...addresses]),
    close: () => new Promise<void>((resolve) => socket.close(resolve)),
  }
}

const LOOPBACK = '::1'
const LOOPBACK_BYTES = [...Array<number>(15).fill(0), 1]

/** RFC 1035, with a lifetime of 0. */
function answerTo(question: Buffer, type: number, addresses: readonly (readonly number[])[]): Buffer {
  const header = Buffer.from(question)
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(addresses.length, 6)
  header.writeUInt16BE(0, 8)
  header.writeUInt16BE(0, 10)
  const records = addresses.map((address) => {
    const record = Buffer.alloc(12 + address.length)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt16BE(address.length, 10)
    record.set(address, 12)
    return record
  })
  return Buffer.concat([header, ...records])
}
