/** What simulated hosts send their guests over. Hosts that shall reach each other are given the same network. */

/** All that a guest is while it is between two hosts. */
export interface SimulatedMemory {
  readonly life: string
  readonly isBooted: boolean
  readonly isHung: boolean
  readonly typed: string
}

/** One that waits for a guest. */
export interface SimulatedReceiver {
  readonly key: string
  /** The guest has arrived whole. */
  take(memory: SimulatedMemory): void
  /** The connection broke before that. */
  lose(): void
}

export interface SimulatedNetwork {
  /** The port that the receiver has from now on. */
  listen(host: string, receiver: SimulatedReceiver): number
  close(host: string, port: number): void
  /** Undefined when nobody listens there, or nothing gets through. */
  connect(from: string, host: string, port: number): SimulatedReceiver | undefined
  /** Nothing gets to the host or away from it until `mend`; what was under way is lost, and neither end is told. */
  cut(host: string): void
  mend(host: string): void
  isCut(host: string): boolean
}

const FIRST_PORT = 49_152
const PORTS = 16_384

export function newSimulatedNetwork(): SimulatedNetwork {
  const receivers = new Map<string, SimulatedReceiver>()
  const cutOff = new Set<string>()
  let ports = 0
  return {
    listen(host, receiver) {
      const port = FIRST_PORT + (ports++ % PORTS)
      receivers.set(`${host}:${port}`, receiver)
      return port
    },
    close: (host, port) => void receivers.delete(`${host}:${port}`),
    connect: (from, host, port) => (cutOff.has(from) || cutOff.has(host) ? undefined : receivers.get(`${host}:${port}`)),
    cut: (host) => void cutOff.add(host),
    mend: (host) => void cutOff.delete(host),
    isCut: (host) => cutOff.has(host),
  }
}
