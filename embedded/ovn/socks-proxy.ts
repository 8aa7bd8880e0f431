/** A SOCKS5 proxy (RFC 1928) for one connection: CONNECT without authentication, only to addresses of servers. Pure,
 *  except for the sockets. */
import { BlockList, connect, isIP, type Socket } from 'node:net'

const VERSION = 5
const CONNECT = 1
const REPLY = { succeeded: 0, notAllowed: 2, unreachable: 4, refused: 5, noCommand: 7, noAddressType: 8 } as const
const NO_METHOD = 0xff
const GREETING_BYTES_MAXIMUM = 2 + 255
const REQUEST_BYTES_MAXIMUM = 4 + 256 + 2

interface Request {
  readonly bytes: number
  readonly host: string
  readonly port: number
}

export interface SocksProxy {
  /** Serves a client that sends its destination by the protocol. */
  serve(client: Socket): void
  /** Connects a client directly to the host and port, without the protocol. */
  join(client: Socket, host: string, port: number): void
}

/** Networks that the proxy connects to, as ADDRESS/PREFIX. */
export function openSocksProxy(networks: readonly string[]): SocksProxy {
  const allowed = new BlockList()
  for (const network of networks) {
    const [address = '', prefix = ''] = network.split('/')
    allowed.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4')
  }
  const isAllowed = (host: string) => isIP(host) !== 0 && allowed.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
  return {
    serve(client) {
      client.on('error', () => client.destroy())
      void serve(client, isAllowed).catch(() => client.destroy())
    },
    join(client, host, port) {
      client.on('error', () => client.destroy())
      if (!isAllowed(host)) return void client.destroy()
      const server = connect({ host, port, allowHalfOpen: true })
      client.once('close', () => server.destroy())
      server.once('error', () => client.destroy())
      server.once('connect', () => {
        client.pipe(server)
        server.pipe(client)
      })
    },
  }
}

async function serve(client: Socket, isAllowed: (host: string) => boolean): Promise<void> {
  const methods = await take(client, GREETING_BYTES_MAXIMUM, (head) => {
    if (head.length < 2 || head.length < 2 + (head[1] ?? 0)) return undefined
    return {
      bytes: 2 + (head[1] ?? 0),
      isFree: head[0] === VERSION && head.subarray(2, 2 + (head[1] ?? 0)).includes(0),
    }
  })
  client.write(Buffer.from([VERSION, methods.isFree ? 0 : NO_METHOD]))
  if (!methods.isFree) return void client.end()
  const answer = (code: number) => client.write(Buffer.from([VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]))
  const request = await take(client, REQUEST_BYTES_MAXIMUM, readRequest)
  if (typeof request === 'number') return void (answer(request), client.end())
  if (!isAllowed(request.host)) return void (answer(REPLY.notAllowed), client.end())
  const server = connect({ host: request.host, port: request.port, allowHalfOpen: true })
  client.once('close', () => server.destroy())
  server.once('connect', () => {
    answer(REPLY.succeeded)
    client.pipe(server)
    server.pipe(client)
  })
  server.once('error', (error: NodeJS.ErrnoException) => {
    if (server.bytesRead === 0 && client.writable)
      answer(error.code === 'ECONNREFUSED' ? REPLY.refused : REPLY.unreachable)
    client.end()
  })
}

/** The request, or the error code of a refusal; undefined while it is incomplete. */
function readRequest(head: Buffer): Request | number | undefined {
  if (head.length < 5) return undefined
  const [version, command, , type, length = 0] = head
  if (version !== VERSION || command !== CONNECT) return REPLY.noCommand
  const bytes = type === 1 ? 4 : type === 4 ? 16 : type === 3 ? length : 0
  if (bytes === 0) return REPLY.noAddressType
  const from = type === 3 ? 5 : 4
  if (head.length < from + bytes + 2) return undefined
  const address = head.subarray(from, from + bytes)
  const host =
    type === 1
      ? address.join('.')
      : type === 3
        ? address.toString('latin1')
        : Array.from({ length: 8 }, (_, index) => address.readUInt16BE(index * 2).toString(16)).join(':')
  return { bytes: from + bytes + 2, host, port: head.readUInt16BE(from + bytes) }
}

/** Returns the reader's result for the first bytes; later bytes stay in the socket. */
function take<Read>(socket: Socket, bytesMaximum: number, read: (head: Buffer) => Read | undefined): Promise<Read> {
  return new Promise((resolve, reject) => {
    let head: Buffer = Buffer.alloc(0)
    const end = (then: () => void) => {
      socket.off('readable', look)
      socket.off('close', closed)
      then()
    }
    const closed = () => end(() => reject(new Error('closed')))
    const look = () => {
      const next = (): Buffer | null => socket.read() // a socket without an encoding yields bytes
      for (let chunk = next(); chunk !== null; chunk = next()) head = Buffer.concat([head, chunk])
      const found = read(head)
      if (found === undefined) {
        if (head.length > bytesMaximum) end(() => reject(new Error('too long')))
        return
      }
      const bytes = typeof found === 'object' && found !== null && 'bytes' in found ? Number(found.bytes) : head.length
      end(() => {
        if (head.length > bytes) socket.unshift(head.subarray(bytes))
        resolve(found)
      })
    }
    socket.on('readable', look)
    socket.once('close', closed)
    look()
  })
}
