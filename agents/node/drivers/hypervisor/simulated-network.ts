/** The network between simulated hosts. Hosts that can reach each other share one network. */

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
  /** The guest has arrived completely. */
  receive(memory: SimulatedMemory): void
  /** The connection broke before the guest arrived. */
  abort(): void
}

/** How simulated hosts reach each other. */
export interface GuestTransport {
  /** Makes the receiver reachable until it is closed; returns its port. */
  listen(host: string, receiver: SimulatedReceiver): { readonly port: number; close(): void }
  /** The receiver of this key at the address; undefined when there is none, or when the network is cut. */
  connect(from: string, host: string, port: number, key: string): SimulatedReceiver | undefined
  /** Data to or from the host is lost, and the writer does not notice. */
  isCut(host: string): boolean
}

/** A network for hosts in one process. */
export interface SimulatedNetwork extends GuestTransport {
  /** Cuts the host off until `mend`. Data in transit is lost, and neither end notices. */
  cut(host: string): void
  mend(host: string): void
}

const FIRST_PORT = 49_152
const PORTS = 16_384

/** A network without cuts. */
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
