/** Connects simulated hosts in separate processes over TCP. A sender writes the key and, at the hand-over, the guest. A
 *  connection that closes earlier has lost the guest. */
import { connect, createServer, type Socket } from 'node:net'
import { z } from 'zod'
import { readLines } from '../../../../kit/http/bounded.ts'
import type { GuestTransport, SimulatedReceiver } from './simulated-network.ts'
import { listen } from '../../../../kit/sys/listen.ts'

/** Limit of a line that holds everything about a guest. */
const LINE_BYTES_MAXIMUM = 16 * 1024 ** 2

const Memory = z.strictObject({
  executionId: z.string(),
  isBooted: z.boolean(),
  isHung: z.boolean(),
  typed: z.string(),
})

/** Listens at the address until the process exits, without keeping the process alive. */
export async function openTcpTransport(address: string): Promise<GuestTransport> {
  const receivers = new Map<string, SimulatedReceiver>()
  const senders = new Map<string, { readonly receiver: SimulatedReceiver; isBroken: boolean }>()
  const server = createServer((socket) => void answer(socket, receivers).catch(() => socket.destroy()))
  server.unref()
  const port = await listen(server, { host: address, port: 0 })

  function open(name: string, host: string, at: number, key: string): SimulatedReceiver {
    const socket = connect(at, host)
    socket.unref()
    const sender = {
      isBroken: false,
      receiver: {
        key,
        receive: (memory: object) => leave(() => socket.end(`${JSON.stringify(memory)}\n`)),
        abort: () => leave(() => socket.destroy()),
      },
    }
    const leave = (last: () => void) => {
      senders.delete(name)
      last()
    }
    socket.on('error', () => socket.destroy())
    socket.on('end', () => socket.destroy())
    socket.once('close', () => void (sender.isBroken = true))
    socket.write(`${key}\n`)
    senders.set(name, sender)
    return sender.receiver
  }

  return {
    listen(_host, receiver) {
      receivers.set(receiver.key, receiver)
      const close = () => {
        if (receivers.get(receiver.key) === receiver) receivers.delete(receiver.key)
      }
      return { port, close }
    },
    connect(_from, host, at, key) {
      const name = `${host} ${at} ${key}`
      const known = senders.get(name)
      if (known === undefined) return open(name, host, at, key)
      if (!known.isBroken) return known.receiver
      senders.delete(name)
      return undefined
    },
    isCut: () => false,
  }
}

async function answer(socket: Socket, receivers: ReadonlyMap<string, SimulatedReceiver>): Promise<void> {
  socket.unref()
  socket.on('error', () => socket.destroy())
  let receiver: SimulatedReceiver | undefined
  let hasArrived = false
  for await (const line of readLines(socket, LINE_BYTES_MAXIMUM)) {
    if (receiver === undefined) {
      receiver = receivers.get(line)
      if (receiver === undefined) break
    } else {
      receiver.receive(Memory.parse(JSON.parse(line)))
      hasArrived = true
    }
  }
  socket.destroy()
  if (receiver !== undefined && !hasArrived && receivers.get(receiver.key) === receiver) receiver.abort()
}
