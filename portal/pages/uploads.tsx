/** Files that are being uploaded into a folder of a bucket, one after the other. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { printable } from '../../domain/printable.ts'
import { call, sessionLost } from '../api/client.ts'
import { asRefusal, Refusal } from '../api/refusal.ts'
import { after } from '../system.ts'
import { bytes } from '../texts/format.ts'
import { storageTexts } from '../texts/object-storage.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Between, Panel, Row, Soft, Stack } from '../ui/layout.tsx'
import { Bar } from '../ui/state.tsx'
import { announce } from '../ui/toast.tsx'
import { EXISTS, upload, UploadFailed } from './object-upload.ts'

const UPLOAD_SECONDS = 3_600
/** Of one request of S3. */
const FILE_BYTES_MAXIMUM = 5 * 1024 ** 3
/** Answers of a service that has too much to do, or is being started. */
const PASSING: readonly number[] = [429, 502, 503]
/** Until the next attempt, when the service does not say. */
const HOLD_SECONDS = 5

interface Item {
  readonly id: number
  readonly file: File
  /** With the folder that was open when it was chosen. */
  readonly key: string
  readonly sent: number
  readonly state: 'waiting' | 'sending' | 'stored' | 'exists' | 'failed'
  readonly isReplacing: boolean
  /** Why it has failed, or waits. */
  readonly why?: ReactNode
}

export interface Uploads {
  readonly items: readonly Item[]
  add(prefix: string, files: readonly File[]): void
  /** Tries again, or replaces the object that has the name. */
  repeat(id: number, isReplacing: boolean): void
  /** Ends it, if it is under way. */
  dismiss(id: number): void
}

export interface UploadsOptions {
  readonly zone: string
  readonly bucket: string
  /** Called when some are stored, and nothing more is under way. */
  readonly stored: () => void
}

export const isUnderWay = ({ state }: Pick<Item, 'state'>): boolean => state === 'sending' || state === 'waiting'

/** What does not say anything about the file: it is sent again later. */
export const isPassing = (error: unknown): boolean =>
  error instanceof UploadFailed
    ? PASSING.includes(error.status) || (error.status === 0 && navigator.onLine === false)
    : error instanceof Refusal && (PASSING.includes(error.status) || error.status === 0 || error.status === 401)

interface Sending extends Omit<UploadsOptions, 'stored'> {
  readonly item: Pick<Item, 'file' | 'key' | 'isReplacing'>
  readonly signal: AbortSignal
  readonly onProgress: (sent: number) => void
  /** Called with where it goes, once that is known. */
  readonly onAddress: (url: string) => void
}

/** Sends one file to an address that is signed for it. */
export async function sendFile({ zone, bucket, item, signal, onProgress, onAddress }: Sending): Promise<void> {
  const { file, key, isReplacing } = item
  const { presigned_url: url = '' } = await call('presign_object_storage_object', {
    path: { zone, bucket },
    body: { method: 'PUT', key, expires_in_seconds: UPLOAD_SECONDS },
    signal,
  })
  onAddress(url)
  await upload({ url, file, isReplacing, signal, onProgress })
}

function itemOf(id: number, prefix: string, file: File): Item {
  const item = { id, file, key: prefix + file.name, sent: 0, isReplacing: false }
  return file.size > FILE_BYTES_MAXIMUM
    ? { ...item, state: 'failed', why: storageTexts().tooLarge(bytes(FILE_BYTES_MAXIMUM)) }
    : { ...item, state: 'waiting' }
}

/** Whether nothing is to be sent now, and what begins that: it ends after a time, or when the browser is online. */
function useHold(): readonly [boolean, (refusal: Refusal) => void] {
  const [seconds, setSeconds] = useState<number>()
  useEffect(() => {
    if (seconds === undefined) return undefined
    const release = (): void => setSeconds(undefined)
    const cancel = after(seconds * 1_000, release)
    addEventListener('online', release)
    return () => {
      cancel()
      removeEventListener('online', release)
    }
  }, [seconds])
  const hold = ({ status, retryAfterSeconds }: Refusal): void => {
    // after a sign-in it goes on at once
    if (status !== 401) setSeconds(Math.max(1, retryAfterSeconds ?? HOLD_SECONDS))
  }
  return [seconds !== undefined, hold]
}

/** What is under way ends with the page. */
export function useUploads({ zone, bucket, stored }: UploadsOptions): Uploads {
  const [items, setItems] = useState<readonly Item[]>([])
  const count = useRef(0)
  const sending = useRef<AbortController>(undefined)
  const isChanged = useRef(false)
  const [isHeld, hold] = useHold()
  const isLost = sessionLost.use()
  const change = (id: number, fields: Partial<Item>): void =>
    setItems((before) => before.map((item) => (item.id === id ? { ...item, ...fields } : item)))
  useEffect(() => () => sending.current?.abort(), [])
  const isOff = isHeld || isLost || items.some(({ state }) => state === 'sending')
  const next = isOff ? undefined : items.find(({ state }) => state === 'waiting')
  const send = async (item: Item, signal: AbortSignal): Promise<void> => {
    const { id, file } = item
    let url = ''
    const onAddress = (signed: string): void => {
      url = signed
    }
    try {
      await sendFile({ zone, bucket, item, signal, onAddress, onProgress: (sent) => change(id, { sent }) })
      isChanged.current = true
      change(id, { state: 'stored', sent: file.size })
      announce(storageTexts().isStored(file.name))
    } catch (error) {
      if (signal.aborted) return
      if (isPassing(error)) {
        change(id, { state: 'waiting', sent: 0, why: whyOf(error, url) })
        hold(asRefusal('presign_object_storage_object', error))
        return
      }
      const isThere = error instanceof UploadFailed && error.status === EXISTS
      change(id, isThere ? { state: 'exists', sent: 0 } : { state: 'failed', sent: 0, why: whyOf(error, url) })
      announce(isThere ? storageTexts().exists(file.name) : storageTexts().isNotStored(file.name))
    }
  }
  useEffect(() => {
    if (next === undefined) return
    sending.current = new AbortController()
    change(next.id, { state: 'sending', why: undefined })
    void send(next, sending.current.signal)
  })
  useEffect(() => {
    if (!isChanged.current || items.some(isUnderWay)) return
    isChanged.current = false
    stored()
  })
  return {
    items,
    add: (prefix, files) =>
      setItems((before) => [...before, ...files.map((file) => itemOf((count.current += 1), prefix, file))]),
    repeat: (id, isReplacing) => change(id, { state: 'waiting', isReplacing, sent: 0, why: undefined }),
    dismiss: (id) => {
      if (items.some((item) => item.id === id && item.state === 'sending')) {
        sending.current?.abort()
        // it may be there already
        isChanged.current = true
      }
      setItems((before) => before.filter((item) => item.id !== id))
    },
  }
}

/** Without an answer the browser does not say why: the person looks at the address. */
export function whyOf(error: unknown, url: string): ReactNode {
  if (!(error instanceof UploadFailed)) {
    const { message, status } = asRefusal('presign_object_storage_object', error)
    if (status === 0) return t().problem.unreachable
    return message === '' ? t().problem.refused(status) : printable(message)
  }
  if (error.status > 0) return error.message === '' ? storageTexts().refusedUpload : printable(error.message)
  const { origin } = new URL(url)
  return (
    <>
      {storageTexts().unreachable}{' '}
      <AriaLink href={origin} target="_blank" rel="noopener noreferrer">
        {origin}
      </AriaLink>
    </>
  )
}

export function UploadList({ uploads }: { readonly uploads: Uploads }): ReactNode {
  if (uploads.items.length === 0) return null
  return (
    <Panel title={storageTexts().uploads}>
      <Stack>
        {uploads.items.map((item) => (
          <div key={item.id} role="group" aria-label={printable(item.file.name)}>
            <Between>
              <span dir="auto">{printable(item.file.name)}</span>
              <Row>
                <Choices item={item} uploads={uploads} />
              </Row>
            </Between>
            <Progress item={item} />
          </div>
        ))}
      </Stack>
    </Panel>
  )
}

interface ItemProps {
  readonly item: Item
}

function Progress({ item: { state, sent, file, why } }: ItemProps): ReactNode {
  if (state === 'sending')
    return (
      <Bar
        part={file.size === 0 ? 0 : sent / file.size}
        label={storageTexts().sent(bytes(sent), bytes(file.size), file.name)}
      />
    )
  if (state === 'failed') return <p className="wrong">{why}</p>
  if (state === 'exists') return <Soft>{storageTexts().exists(file.name)}</Soft>
  return (
    <>
      <Soft>{storageTexts().states[state]}</Soft>
      {state === 'waiting' && why !== undefined ? <Soft>{why}</Soft> : null}
    </>
  )
}

function Choices({ item: { id, state }, uploads }: ItemProps & { readonly uploads: Uploads }): ReactNode {
  if (isUnderWay({ state })) return <Button onPress={() => uploads.dismiss(id)}>{t().ui.cancel}</Button>
  return (
    <>
      {state === 'exists' ? <Button onPress={() => uploads.repeat(id, true)}>{storageTexts().replace}</Button> : null}
      {state === 'failed' ? <Button onPress={() => uploads.repeat(id, false)}>{t().problem.again}</Button> : null}
      <Button kind="quiet" onPress={() => uploads.dismiss(id)}>
        {t().ui.dismiss}
      </Button>
    </>
  )
}
