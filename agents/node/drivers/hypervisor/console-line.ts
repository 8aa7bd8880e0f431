/** The serial line of one guest, for both hypervisors: the tail, its listeners, and the destination of typed bytes. */
import {
  CONSOLE_TAIL_BYTES,
  type ConsoleEvent,
  type ConsolePosition,
  type ConsoleStatus,
  type GuestConsole,
} from './hypervisor.ts'

export class ConsoleLine implements GuestConsole {
  #chunks: Buffer[] = []
  #length = 0
  #position: ConsolePosition
  #status: ConsoleStatus = { isConnected: false, isRunning: false, incarnation: 0 }
  #send: ((bytes: Buffer) => boolean) | undefined
  readonly #listeners = new Set<(event: ConsoleEvent) => void>()

  constructor(history: Buffer = Buffer.alloc(0), position: ConsolePosition = { log: 'memory', end: history.length }) {
    this.#position = position
    this.#keep(history)
  }

  tail(): Buffer {
    const tail = Buffer.concat(this.#chunks).subarray(-CONSOLE_TAIL_BYTES)
    this.#chunks = [tail]
    this.#length = tail.length
    return tail
  }

  position(): ConsolePosition {
    return this.#position
  }

  status(): ConsoleStatus {
    return this.#status
  }

  write(bytes: Buffer): boolean {
    return this.#send?.(bytes) ?? false
  }

  subscribe(listener: (event: ConsoleEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Adds output of the guest. `position` is the end of the bytes; it is given when earlier output was skipped. */
  append(bytes: Buffer, position?: ConsolePosition): void {
    this.#position = position ?? { ...this.#position, end: this.#position.end + bytes.length }
    this.#keep(bytes)
    this.#emit({ type: 'output', bytes })
  }

  /** A guest runs. `send` passes bytes to it, and is undefined while its line is not attached. */
  running(incarnation: number, send: ((bytes: Buffer) => boolean) | undefined): void {
    this.#send = send
    this.#change({ isConnected: send !== undefined, isRunning: true, incarnation })
  }

  stopped(): void {
    this.#send = undefined
    this.#change({ ...this.#status, isConnected: false, isRunning: false })
  }

  removed(): void {
    this.stopped()
    this.#emit({ type: 'removed' })
  }

  #keep(bytes: Buffer): void {
    this.#chunks.push(bytes)
    this.#length += bytes.length
    if (this.#length > 2 * CONSOLE_TAIL_BYTES) this.tail()
  }

  #change(status: ConsoleStatus): void {
    const { isConnected, isRunning, incarnation } = this.#status
    if (isConnected === status.isConnected && isRunning === status.isRunning && incarnation === status.incarnation)
      return
    this.#status = status
    this.#emit({ type: 'status', status })
  }

  #emit(event: ConsoleEvent): void {
    for (const listener of Array.from(this.#listeners)) listener(event)
  }
}
