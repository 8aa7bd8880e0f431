/** Connects standard input and output to a port through a SOCKS5 proxy (RFC 1928), as a ProxyCommand of ssh. Arguments:
 *  address and port of the proxy, address and port of the target. */
import { once } from 'node:events'
import { connect, isIPv6 } from 'node:net'
import { exitProcess, printErrorLine, processArguments, standardStreams } from '../kit/sys/process.ts'
import { EXIT } from './exit.ts'

const VERSION = 5
const REPLY_BYTES = 10

const [proxyHost = '', proxyPort = '', host = '', port = ''] = processArguments()
const fail = (why: string): never => {
  printErrorLine(
    `${isIPv6(host) ? `[${host}]` : host}:${port} is not reached by the proxy ${proxyHost}:${proxyPort}: ${why}`,
  )
  return exitProcess(EXIT.unreachable)
}
const socket = connect({ host: proxyHost, port: Number(proxyPort), allowHalfOpen: true })
socket.once('error', (error) => fail(error.message))
socket.once('end', () => fail('it has closed the connection'))

/** Exactly this many bytes. */
async function read(count: number): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(count) as Buffer | null // no encoding was set
    if (bytes !== null) return bytes
    await once(socket, 'readable')
  }
}

await once(socket, 'connect')
socket.write(Buffer.from([VERSION, 1, 0]))
if ((await read(2))[1] !== 0) fail('it requires authentication')
const name = Buffer.from(host, 'latin1')
const destination = Buffer.alloc(2)
destination.writeUInt16BE(Number(port))
socket.write(Buffer.concat([Buffer.from([VERSION, 1, 0, 3, name.length]), name, destination]))
const reply = await read(REPLY_BYTES)
if (reply[1] !== 0) fail(`it answers ${reply[1]}`)

socket.removeAllListeners('end')
const { input, output } = standardStreams()
socket.once('close', () => input.destroy()) // received data is still written
input.pipe(socket)
socket.pipe(output)
