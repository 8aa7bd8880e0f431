/** Files that are being uploaded into a folder of a bucket, one after the other. */
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { printable } from '../../domain/printable.ts'
import { call } from '../api/client.ts'
import { asRefusal } from '../api/refusal.ts'
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

interface Item {
  readonly id: number
  readonly file: File
  /** With the folder that was open when it was chosen. */
  readonly key: string
  readonly sent: number
  readonly state: 'waiting' | 'sending' | 'stored' | 'exists' | 'failed'
  readonly isReplacing: boolean
  /** Why it has failed. */
  readonly why?: ReactNode
}

export interface Uploads {
  readonly items: readonly Item[]
  add(prefix: string, files: readonly File[]): void
  /** Tries again, or replaces the object that has the name. */
  repeat(id: number, isReplacing: boolean): void
  dismiss(id: number): void
}

export interface UploadsOptions {
  readonly zone: string
  readonly bucket: string
  /** Called when one is stored. */
  readonly stored: () => void
}

/** What is under way ends with the page. */
export function useUploads({ zone, bucket, stored }: UploadsOptions): Uploads {
  const [items, setItems] = useState<readonly Item[]>([])
  const count = useRef(0)
  const ending = useRef<AbortController>(undefined)
  const change = (id: number, fields: Partial<Item>): void =>
    setItems((before) => before.map((item) => (item.id === id ? { ...item, ...fields } : item)))
  useEffect(() => {
    const controller = new AbortController()
    ending.current = controller
    return () => controller.abort()
  }, [])
  const next = items.some(({ state }) => state === 'sending')
    ? undefined
    : items.find(({ state }) => state === 'waiting')
  const send = async ({ id, file, key, isReplacing }: Item, signal: AbortSignal): Promise<void> => {
    let url = ''
    try {
      const { presigned_url: signed = '' } = await call('presign_object_storage_object', {
        path: { zone, bucket },
        body: { method: 'PUT', key, expires_in_seconds: UPLOAD_SECONDS },
      })
      url = signed
      await upload({ url, file, isReplacing, signal, onProgress: (sent) => change(id, { sent }) })
      change(id, { state: 'stored', sent: file.size })
      announce(storageTexts().isStored(file.name))
      stored()
    } catch (error) {
      if (signal.aborted) return
      const isThere = error instanceof UploadFailed && error.status === EXISTS
      change(id, isThere ? { state: 'exists', sent: 0 } : { state: 'failed', sent: 0, why: whyOf(error, url) })
      announce(isThere ? storageTexts().exists(file.name) : storageTexts().isNotStored(file.name))
    }
  }
  useEffect(() => {
    if (next === undefined || ending.current === undefined) return
    change(next.id, { state: 'sending' })
    void send(next, ending.current.signal)
  })
  return {
    items,
    add: (prefix, files) =>
      setItems((before) => [
        ...before,
        ...files.map((file): Item => {
          const isTooLarge = file.size > FILE_BYTES_MAXIMUM
          return {
            id: (count.current += 1),
            file,
            key: prefix + file.name,
            sent: 0,
            state: isTooLarge ? 'failed' : 'waiting',
            isReplacing: false,
            ...(isTooLarge ? { why: storageTexts().tooLarge(bytes(FILE_BYTES_MAXIMUM)) } : {}),
          }
        }),
      ]),
    repeat: (id, isReplacing) => change(id, { state: 'waiting', isReplacing, sent: 0 }),
    dismiss: (id) => setItems((before) => before.filter((item) => item.id !== id)),
  }
}

/** Without an answer the browser does not say why: the person looks at the address. */
function whyOf(error: unknown, url: string): ReactNode {
  if (!(error instanceof UploadFailed)) {
    const { problem, status } = asRefusal('presign_object_storage_object', error)
    return status === 0 ? t().problem.unreachable : printable(problem.detail ?? '')
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
  return <Soft>{state === 'exists' ? storageTexts().exists(file.name) : storageTexts().states[state]}</Soft>
}

function Choices({ item: { id, state }, uploads }: ItemProps & { readonly uploads: Uploads }): ReactNode {
  if (state === 'sending' || state === 'waiting') return null
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
