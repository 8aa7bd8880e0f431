/** The host's side of a reader in a pod. */
import { printable } from '../../domain/printable.ts'
import { readText, TooLong } from '../../kit/http/bounded.ts'
import { READER_NAME, type ReaderCredentials } from '../core/credentials.ts'
import { type Client, openClient } from '../core/https-client.ts'
import { Asking, QUESTIONS_MAXIMUM } from '../core/reading/asking.ts'
import { ANSWER_BYTES_MAXIMUM, type Question } from '../core/reading/messages.ts'
import { TASKS, type TaskName } from '../core/reading/tasks.ts'
import type { Clock } from '../../kit/sys/clock.ts'

const SNAPSHOT_SILENCE_MILLISECONDS = 30_000
const REASON_BYTES_MAXIMUM = 1_000

export interface PodReaderOptions {
  readonly credentials: Pick<ReaderCredentials, 'authority' | 'client'>
  /** `https://HOST:PORT` of the one that is believed; undefined while there is none. */
  readonly address: () => string | undefined
  /** It said what cannot be meant, or nothing in time: another one has to take its place. */
  readonly replace: () => void
  readonly clock: Clock
}

export class PodReader {
  readonly #options: PodReaderOptions
  readonly #client: Client
  readonly #asking: Asking

  constructor(options: PodReaderOptions) {
    const { credentials, clock, replace } = options
    this.#options = options
    this.#client = openClient(credentials.authority, credentials.client, {
      clock,
      serverName: READER_NAME,
      requestsMaximum: QUESTIONS_MAXIMUM,
    })
    this.#asking = new Asking({ clock, end: replace, send: (question) => void this.#send(this.#address(), question) })
  }

  get ask(): Asking['ask'] {
    return this.#asking.ask.bind(this.#asking)
  }

  /** A snapshot of etcd at that address, as it comes: whoever takes it in judges it. */
  async *snapshotParts(etcd: string): AsyncGenerator<Uint8Array, void> {
    const response = await this.#client.open(`${this.#address()}/snapshot`, {
      method: 'POST',
      body: { etcd },
      timeoutMilliseconds: SNAPSHOT_SILENCE_MILLISECONDS,
    })
    if (response.statusCode !== 200) {
      const why = await readText(response, REASON_BYTES_MAXIMUM).catch(() => 'at length')
      throw new Error(`what reads etcd answered ${response.statusCode}: ${printable(why)}`)
    }
    yield* response as AsyncIterable<Uint8Array> // without an encoding
  }

  close(): void {
    this.#client.close()
  }

  #address(): string {
    const address = this.#options.address()
    if (address === undefined) throw new Error('what reads its API is being started')
    return address
  }

  /** One that cannot be reached, or ends, has told no lie: that question has failed. */
  async #send(address: string, question: Question): Promise<void> {
    // Whoever asks takes it from the table.
    const { milliseconds } = TASKS[question.task as TaskName]
    const answer = await this.#client
      .send(`${address}/tasks`, {
        method: 'POST',
        body: question,
        timeoutMilliseconds: 2 * milliseconds,
        wholeMilliseconds: 2 * milliseconds,
        answerBytesMaximum: ANSWER_BYTES_MAXIMUM,
      })
      .catch((error: unknown) => (error instanceof TooLong ? undefined : this.#fail(question, error)))
    // What else was asked of one that is believed no longer has failed already.
    if (answer === 'failed' || this.#options.address() !== address) return
    try {
      if (answer?.status !== 200) throw new Error('it does not answer questions')
      this.#asking.hear(answer.text, question.id)
    } catch {
      this.#asking.end('it said what cannot be meant')
    }
  }

  #fail({ id }: Question, error: unknown): 'failed' {
    this.#asking.fail(id, error instanceof Error ? error : new Error(String(error)))
    return 'failed'
  }
}
