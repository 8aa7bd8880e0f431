/** `/object-storage/<zone>/<bucket>`: objects of a bucket, folder by folder. Bodies go between the browser and object
 *  storage by signed addresses, which live minutes and are kept nowhere. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { useParams, useRouter, useSearch } from '@tanstack/react-router'
import { Ellipsis, Folder as FolderIcon, Upload } from 'lucide-react'
import { type DragEvent, type ReactNode, useRef, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import type { StoredObject } from '../../client/schema.ts'
import { printable } from '../../domain/printable.ts'
import { keyOf, readAgain } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { asRefusal, Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { Time } from '../nouns/value.tsx'
import { bytes, utc } from '../texts/format.ts'
import { storageTexts } from '../texts/object-storage.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { type Crumb, Loading, Page, Panel, Soft, Toolbar } from '../ui/layout.tsx'
import { Menu } from '../ui/menu.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { bucketHref, folderIn, foldersOf, nameIn } from './folders.ts'
import { useLeaveQuestion } from './leave.tsx'
import { atEndOf, LoadMore } from './more.tsx'
import { useSubmission } from './submission.ts'
import { isUnderWay, UploadList, useUploads } from './uploads.tsx'

const PAGE_ITEMS = 100
const DOWNLOAD_SECONDS = 300

interface Place {
  readonly zone: string
  readonly bucket: string
}

export function BucketPage(): ReactNode {
  const { zone = '', bucket = '' }: Partial<Place> = useParams({ strict: false })
  const { folder }: { readonly folder?: unknown } = useSearch({ strict: false })
  return <Bucket key={`${zone} ${bucket}`} place={{ zone, bucket }} prefix={folderIn(folder)} />
}

interface InFolder {
  readonly place: Place
  readonly prefix: string
}

function Bucket({ place, prefix }: InFolder): ReactNode {
  const uploads = useUploads({ ...place, stored: () => void readAgain('list_object_storage_objects') })
  const { history } = useRouter()
  const leaveQuestion = useLeaveQuestion(history, uploads.items.some(isUnderWay))
  const may = useMay()
  const canUpload = may('presign_object_storage_object')
  const drop = (event: DragEvent): void => {
    event.preventDefault()
    if (canUpload) uploads.add(prefix, [...event.dataTransfer.files])
  }
  return (
    <Page
      title={printable(foldersOf(prefix).at(-1)?.name ?? place.bucket)}
      crumbs={crumbsOf(place, prefix)}
      buttons={canUpload ? <UploadButton choose={(files) => uploads.add(prefix, files)} /> : undefined}
    >
      <div className="stack" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <UploadList uploads={uploads} />
        <Objects key={prefix} place={place} prefix={prefix} />
        {leaveQuestion}
      </div>
    </Page>
  )
}

function UploadButton({ choose }: { readonly choose: (files: readonly File[]) => void }): ReactNode {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button kind="primary" icon={<Upload aria-hidden="true" />} onPress={() => input.current?.click()}>
        {storageTexts().upload}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ target }) => {
          choose([...(target.files ?? [])])
          // the same file can be chosen again
          target.value = ''
        }}
      />
    </>
  )
}

function crumbsOf({ zone, bucket }: Place, prefix: string): readonly Crumb[] {
  const folders = foldersOf(prefix)
  return [
    { name: t().objectStorage.title, href: '/object-storage' },
    { name: zone },
    ...(folders.length === 0 ? [] : [{ name: bucket, href: bucketHref(zone, bucket) }]),
    ...folders
      .slice(0, -1)
      .map((folder) => ({ name: printable(folder.name), href: bucketHref(zone, bucket, folder.prefix) })),
  ]
}

/** A folder, or an object. */
interface Entry {
  readonly id: string
  readonly key: string
  readonly object?: StoredObject
}

const useObjects = (place: Place, prefix: string) =>
  useInfiniteQuery({
    queryKey: keyOf('list_object_storage_objects', { path: place, prefix }),
    queryFn: ({ pageParam, signal }) =>
      call('list_object_storage_objects', {
        path: place,
        query: { prefix, limit: PAGE_ITEMS, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
    // the stream of changes has none of them
    staleTime: 0,
    placeholderData: (before) => before,
  })

function Objects({ place, prefix }: InFolder): ReactNode {
  const [filter, setFilter] = useState('')
  const list = useObjects(place, prefix + filter)
  const entries = (list.data?.pages ?? []).flatMap(({ folders, items }): readonly Entry[] => [
    ...folders.map((key) => ({ id: `folder ${key}`, key })),
    ...items.map((object) => ({ id: `object ${object.key}`, key: object.key, object })),
  ])
  // what is listed may all be hidden on one page, and not on the next
  const isEmpty = list.data !== undefined && entries.length === 0 && !list.hasNextPage
  const more = list.hasNextPage ? <LoadMore list={list} operation="list_object_storage_objects" /> : undefined
  return (
    <>
      <Toolbar>
        <div className="search">
          <TextField
            label={storageTexts().namesBeginWith}
            isLabelHidden
            type="search"
            placeholder={storageTexts().namesBeginWith}
            value={filter}
            onChange={setFilter}
          />
        </div>
      </Toolbar>
      {list.error instanceof Refusal && !list.isFetchNextPageError ? (
        <ProblemView refusal={list.error} retry={() => void list.refetch()} />
      ) : null}
      {list.isPending ? <Loading /> : null}
      {isEmpty ? (
        <Panel>
          <Soft>{filter === '' ? storageTexts().noObjects : t().list.noneFound}</Soft>
        </Panel>
      ) : null}
      {entries.length === 0 ? (
        more
      ) : (
        <Entries place={place} prefix={prefix} entries={entries} atEnd={atEndOf(list)} more={more} />
      )}
    </>
  )
}

interface EntriesProps extends InFolder {
  readonly entries: readonly Entry[]
  readonly atEnd: (() => void) | undefined
  readonly more: ReactNode
}

type Question = 'share' | 'delete'

function Entries({ place, prefix, entries, atEnd, more }: EntriesProps): ReactNode {
  const [asked, setAsked] = useState<{ readonly question: Question; readonly key: string }>()
  const [refusal, setRefusal] = useState<Refusal>()
  const may = useMay()
  const close = (): void => setAsked(undefined)
  const download = async (key: string): Promise<void> => {
    setRefusal(undefined)
    try {
      openAddress((await signed(place, key, DOWNLOAD_SECONDS)).url)
    } catch (error) {
      setRefusal(asRefusal('presign_object_storage_object', error))
    }
  }
  return (
    <>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Table<Entry>
        label={storageTexts().objects}
        items={entries}
        columns={columnsOf(place, prefix)}
        onEnd={atEnd}
        {...(may('presign_object_storage_object')
          ? {
              menuOf: ({ key, object }) =>
                object === undefined ? null : (
                  <ObjectMenu
                    name={printable(nameIn(prefix, key))}
                    download={() => void download(key)}
                    ask={(question) => setAsked({ question, key })}
                  />
                ),
            }
          : {})}
        foot={more}
      />
      {asked?.question === 'share' ? <Share key={asked.key} place={place} object={asked.key} close={close} /> : null}
      {asked?.question === 'delete' ? (
        <DeleteObject key={asked.key} place={place} object={asked.key} close={close} />
      ) : null}
    </>
  )
}

const columnsOf = ({ zone, bucket }: Place, prefix: string): readonly Column<Entry>[] => [
  {
    id: 'name',
    name: t().fields.name,
    cell: ({ key, object }) => {
      const name = <span dir="auto">{printable(nameIn(prefix, key))}</span>
      return object === undefined ? (
        <AriaLink href={bucketHref(zone, bucket, key)}>
          <FolderIcon aria-hidden="true" /> {name}
        </AriaLink>
      ) : (
        name
      )
    },
  },
  {
    id: 'size',
    name: storageTexts().size,
    isEnd: true,
    cell: ({ object }) => (object === undefined ? '–' : bytes(object.size_bytes)),
  },
  {
    id: 'modified',
    name: storageTexts().modified,
    cell: ({ object }) => (object === undefined ? '–' : <Time instant={object.modified_at} />),
  },
]

interface ObjectMenuProps {
  readonly name: string
  readonly download: () => void
  readonly ask: (question: Question) => void
}

function ObjectMenu({ name, download, ask }: ObjectMenuProps): ReactNode {
  return (
    <Menu
      label={t().list.actionsOf(name)}
      entries={[
        { id: 'download', name: storageTexts().download, run: download },
        { id: 'share', name: storageTexts().share, run: () => ask('share') },
        { id: 'delete', name: storageTexts().remove, isBad: true, isApart: true, run: () => ask('delete') },
      ]}
    >
      <Button kind="quiet" label={t().list.actionsOf(name)} icon={<Ellipsis aria-hidden="true" />} />
    </Menu>
  )
}

interface Signed {
  readonly url: string
  readonly expiresAt: string
}

/** An address that downloads the object. Throws a Refusal. */
async function signed(place: Place, key: string, seconds: number): Promise<Signed> {
  const { presigned_url: url = '', expires_at: expiresAt } = await call('presign_object_storage_object', {
    path: { ...place },
    body: { method: 'GET', key, expires_in_seconds: seconds },
  })
  return { url, expiresAt }
}

/** In another tab, which shows a refusal, or that the browser does not trust the certificate. */
function openAddress(url: string): void {
  if (!/^https?:\/\//.test(url)) return
  const link = document.createElement('a')
  link.href = url
  link.target = '_blank'
  link.rel = 'noopener noreferrer'
  link.click()
}

const LIFETIMES = [300, 900, 3_600] as const

interface ObjectProps {
  readonly place: Place
  readonly object: string
  readonly close: () => void
}

function Share({ place, object, close }: ObjectProps): ReactNode {
  const [seconds, setSeconds] = useState('900')
  const [link, setLink] = useState<Signed>()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    setLink(await signed(place, object, Number(seconds)))
  })
  return (
    <Dialog title={storageTexts().share} onClose={close} isWide>
      {link === undefined ? (
        <form className="form" onSubmit={onSubmit} noValidate>
          <p dir="auto">{printable(object)}</p>
          <p>{storageTexts().shareNote}</p>
          <SelectField
            label={storageTexts().lifetime}
            options={LIFETIMES.map((each) => ({ id: String(each), name: storageTexts().minutes(each / 60) }))}
            value={seconds}
            onChange={(next) => setSeconds(next ?? seconds)}
          />
          {refusal === undefined ? null : <ProblemView refusal={refusal} />}
          <div className="dialog-end">
            <Button onPress={close}>{t().ui.cancel}</Button>
            <Button kind="primary" type="submit" isBusy={isBusy}>
              {storageTexts().createLink}
            </Button>
          </div>
        </form>
      ) : (
        <>
          <p>{storageTexts().validUntil(utc(link.expiresAt))}</p>
          <Copy text={link.url} />
          <div className="dialog-end">
            <Button kind="primary" onPress={close}>
              {t().list.done}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

function DeleteObject({ place, object, close }: ObjectProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const remove = async (): Promise<void> => {
    setBusy(true)
    try {
      await call('delete_object_storage_object', { path: { ...place }, body: { key: object } })
      await readAgain('list_object_storage_objects')
      close()
    } catch (error) {
      setRefusal(asRefusal('delete_object_storage_object', error))
      setBusy(false)
    }
  }
  return (
    <Confirm
      title={storageTexts().deleteTitle(printable(nameIn(object.slice(0, object.lastIndexOf('/') + 1), object)))}
      goes={[printable(object)]}
      button={storageTexts().remove}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void remove()}
      onClose={close}
    />
  )
}
