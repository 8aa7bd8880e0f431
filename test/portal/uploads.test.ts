/** Uploads into a bucket, without a browser: what ends them, what they wait for, and what they show. */
import { answer, useOutside } from './outside.ts'
import { htmlOf } from './components.ts'
import { type Run, runHook } from './hooks.ts'
import { createElement } from 'react'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { sessionLost } from '../../portal/api/client.ts'
import { openPortal } from '../../portal/api/portal.ts'
import { Refusal } from '../../portal/api/refusal.ts'
import { customerPortal } from '../../portal/customer.ts'
import { loadTexts } from '../../portal/texts/index.ts'
import { loadStorageTexts } from '../../portal/texts/object-storage.ts'
import { UploadFailed } from '../../portal/pages/object-upload.ts'
import type { Uploads } from '../../portal/pages/uploads.tsx'

const outside = useOutside()

beforeAll(async () => {
  openPortal(customerPortal)
  await loadTexts()
  await loadStorageTexts()
})
afterEach(() => sessionLost.set(false))

const uploads = () => import('../../portal/pages/uploads.tsx')
const refused = (status: number, problem = {}): Refusal =>
  new Refusal('presign_object_storage_object', status === 0 ? undefined : answer(status, {}), problem)

describe('an upload', () => {
  const file = new File(['x'], 'a.txt')

  it('that is cancelled while its address is signed sends nothing to it', async () => {
    const { sendFile } = await uploads()
    const sent: string[] = []
    vi.stubGlobal(
      'XMLHttpRequest',
      class {
        constructor() {
          sent.push('request')
        }
      },
    )
    const controller = new AbortController()
    outside.serve = () => {
      controller.abort()
      return answer(200, { presigned_url: 'https://store.example/a' })
    }
    const sending = sendFile({
      zone: 'eu-1a',
      bucket: 'b',
      item: { file, key: 'a.txt', isReplacing: false },
      signal: controller.signal,
      onProgress: () => undefined,
      onAddress: () => undefined,
    })
    await expect(sending).rejects.toMatchObject({ name: 'AbortError' })
    expect(sent).toEqual([])
    expect(outside.requests[0]?.signal.aborted).toBe(true)
    const { upload } = await import('../../portal/pages/object-upload.ts')
    const late = { url: 'https://store.example/a', file, isReplacing: false, onProgress: () => undefined }
    await expect(upload({ ...late, signal: controller.signal })).rejects.toMatchObject({ name: 'AbortError' })
    expect(sent).toEqual([])
  })

  it('waits for what passes, and fails for the rest', async () => {
    const { isPassing } = await uploads()
    expect([0, 401, 429, 502, 503].map((status) => isPassing(refused(status)))).toEqual(Array(5).fill(true))
    expect([400, 403, 404, 500].map((status) => isPassing(refused(status)))).toEqual(Array(4).fill(false))
    expect([429, 502, 503].map((status) => isPassing(new UploadFailed(status, '')))).toEqual(Array(3).fill(true))
    expect([0, 403, 412].map((status) => isPassing(new UploadFailed(status, '')))).toEqual(Array(3).fill(false))
    vi.stubGlobal('navigator', { onLine: false })
    expect(isPassing(new UploadFailed(0, ''))).toBe(true)
  })

  it('always says why', async () => {
    const { whyOf } = await uploads()
    expect([
      whyOf(refused(400, { title: 'Bad', detail: 'Reserved.' }), ''),
      whyOf(refused(403, { title: 'Forbidden' }), ''),
      whyOf(refused(500), ''),
      whyOf(refused(0), ''),
    ]).toEqual(['Reserved.', 'Forbidden', 'Refused (500)', 'The service does not answer'])
  })

  it('can be cancelled while it waits, and says what it waits for', async () => {
    const { UploadList } = await uploads()
    const item = { id: 1, file, key: 'a.txt', sent: 0, isReplacing: false }
    const htmlIn = (state: 'waiting' | 'sending' | 'stored', why?: string): string => {
      const items = [{ ...item, state, why }]
      const none = (): void => undefined
      return htmlOf(createElement(UploadList, { uploads: { items, add: none, repeat: none, dismiss: none } }))
    }
    expect(htmlIn('waiting', 'The service does not answer')).toMatch(/Cancel.*Waiting.*The service does not answer/)
    expect(htmlIn('sending')).toContain('Cancel')
    expect(htmlIn('stored')).not.toContain('Cancel')
  })
})

describe('the queue of uploads', () => {
  interface Sent {
    readonly answer: (status: number) => void
    isAborted: boolean
  }

  /** The requests to the object storage, which a test answers. */
  function storage(): Sent[] {
    const requests: Sent[] = []
    vi.stubGlobal(
      'XMLHttpRequest',
      class extends EventTarget {
        status = 0
        responseText = ''
        readonly upload = new EventTarget()
        readonly #sent: Sent = {
          answer: (status) => {
            this.status = status
            this.dispatchEvent(new Event('load'))
          },
          isAborted: false,
        }
        open(): void {
          requests.push(this.#sent)
        }
        setRequestHeader(): void {
          // whatever it is
        }
        send(): void {
          // a test answers
        }
        abort(): void {
          this.#sent.isAborted = true
          this.dispatchEvent(new Event('abort'))
        }
      },
    )
    return requests
  }

  const file = (name: string): File => new File(['x'], name)
  const statesOf = ({ latest }: Run<Uploads>) => latest().items.map(({ state }) => state)
  const signed = (): Response => answer(200, { presigned_url: 'https://store.example/a' })

  async function start(...names: readonly string[]) {
    const { useUploads } = await uploads()
    const stored = vi.fn()
    const run = await runHook(() => useUploads({ zone: 'eu-1a', bucket: 'b', stored }))
    await run.act((queue) => queue.add('', names.map(file)))
    return { run, stored }
  }

  beforeEach(() => {
    const online = new EventTarget()
    vi.stubGlobal('addEventListener', online.addEventListener.bind(online))
    vi.stubGlobal('removeEventListener', online.removeEventListener.bind(online))
    vi.stubGlobal('dispatchEvent', online.dispatchEvent.bind(online))
    vi.stubGlobal('navigator', { onLine: true })
  })

  it('reads the list again once, when nothing is under way', async () => {
    const requests = storage()
    outside.serve = signed
    const { run, stored } = await start('a', 'b')
    await vi.waitFor(() => expect(requests).toHaveLength(1))
    await run.act(() => requests[0]?.answer(200))
    await vi.waitFor(() => expect(requests).toHaveLength(2))
    expect([statesOf(run), stored.mock.calls.length]).toEqual([['stored', 'sending'], 0])
    await run.act(() => requests[1]?.answer(200))
    await vi.waitFor(() => expect(stored).toHaveBeenCalledOnce())
    expect(statesOf(run)).toEqual(['stored', 'stored'])
    await run.end()
  })

  it('waits while the service does not answer, and goes on when the browser is online', async () => {
    const requests = storage()
    outside.serve = () => {
      throw new TypeError('Failed to fetch')
    }
    const { run } = await start('a', 'b')
    await vi.waitFor(() => expect(run.latest().items[0]?.why).toBe('The service does not answer'))
    expect(statesOf(run)).toEqual(['waiting', 'waiting'])
    const before = outside.requests.length
    outside.serve = signed
    await run.act(() => undefined)
    expect(outside.requests.length).toBe(before)
    await run.act(() => void dispatchEvent(new Event('online')))
    await vi.waitFor(() => expect(requests).toHaveLength(1))
    expect(statesOf(run)).toEqual(['sending', 'waiting'])
    await run.end()
    expect(requests[0]?.isAborted).toBe(true)
  })

  it('waits for a sign-in', async () => {
    const requests = storage()
    outside.serve = () => answer(401, {})
    const { run } = await start('a')
    await vi.waitFor(() => expect(sessionLost.get()).toBe(true))
    await vi.waitFor(() => expect(statesOf(run)).toEqual(['waiting']))
    outside.serve = signed
    await run.act(() => sessionLost.set(false))
    await vi.waitFor(() => expect(requests).toHaveLength(1))
    await run.end()
  })

  it('goes on with the next when one is cancelled', async () => {
    const requests = storage()
    outside.serve = signed
    const { run, stored } = await start('a', 'b')
    await vi.waitFor(() => expect(requests).toHaveLength(1))
    await run.act((queue) => queue.dismiss(queue.items[0]?.id ?? 0))
    expect(requests[0]?.isAborted).toBe(true)
    await vi.waitFor(() => expect(requests).toHaveLength(2))
    await run.act((queue) => queue.dismiss(queue.items[0]?.id ?? 0))
    await vi.waitFor(() => expect(stored).toHaveBeenCalledOnce())
    expect(run.latest().items).toEqual([])
    await run.end()
  })
})
