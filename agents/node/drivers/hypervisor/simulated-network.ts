/** The network between simulated hosts. Hosts that can reach each other share one. */

/** A guest in transit between two hosts. */
export interface SimulatedMemory {
  readonly executionId: string
  readonly isBooted: boolean
  readonly isHung: boolean
  readonly typed: string
}

/** A receiver that waits for a guest. */
export interface SimulatedReceiver {
  readonly key: string
  /** The guest has arrived whole. */
  receive(memory: SimulatedMemory): void
  /** The connection broke before that. */
  abort(): void
}

/** How simulated hosts reach each other. */
export interface GuestTransport {
  /** Where the receiver can be reached from now on, until it is closed. */
  listen(host: string, receiver: SimulatedReceiver): { readonly port: number; close(): void }
  /** The receiver of this key there; undefined when there is none, or nothing gets through. */
  connect(from: string, host: string, port: number, key: string): SimulatedReceiver | undefined
  /** What is written to the host or from it is lost, and the writer does not know. */
  isCut(host: string): boolean
}

/** Hosts of one process. */
export interface SimulatedNetwork extends GuestTransport {
  /** Nothing gets to the host or away from it until `mend`; what was under way is lost, and neither end is told. */
  cut(host: string): void
  mend(host: string): void
}

const FIRST_PORT = 49_152
const PORTS = 16_384

/** Whole until something is cut. */
export function newSimulatedNetwork(): SimulatedNetwork {
  const receivers = new Map<string, SimulatedReceiver>()
  const cutOff = new Set<string>()
  let ports = 0
  return {
    listen(host, receiver) {
      const port = FIRST_PORT + (ports++ % PORTS)
      receivers.set(`${host}:${port}`, receiver)
      return { port, close: () => void receivers.delete(`${host}:${port}`) }
    },
    connect(from, host, port, key) {
      const receiver = cutOff.has(from) || cutOff.has(host) ? undefined : receivers.get(`${host}:${port}`)
      return receiver?.key === key ? receiver : undefined
    },
    cut: (host) => void cutOff.add(host),
    mend: (host) => void cutOff.delete(host),
    isCut: (host) => cutOff.has(host),
  }
}
