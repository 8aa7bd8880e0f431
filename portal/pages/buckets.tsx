/** The buckets of an account in a zone, on the page of object storage. */
import { Ellipsis, Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import type { ObjectStorage, ObjectStorageBucket } from '../../client/schema.ts'
import { readAgain, useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { asRefusal, Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { useRequestKeys } from '../nouns/request-key.ts'
import { Time } from '../nouns/value.tsx'
import { useGo } from '../shell/go.ts'
import { storageTexts } from '../texts/object-storage.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Loading, Panel, Soft } from '../ui/layout.tsx'
import { Menu } from '../ui/menu.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Table } from '../ui/table.tsx'
import { bucketHref } from './folders.ts'
import { useSubmission } from './submission.ts'

interface Listed extends ObjectStorageBucket {
  readonly id: string
}

interface InZone {
  readonly storage: ObjectStorage
}

export function Buckets({ storage }: InZone): ReactNode {
  const [isCreating, setCreating] = useState(false)
  const [doomed, setDoomed] = useState<string>()
  const may = useMay()
  const { zone } = storage
  const { data, error, refetch } = useRead('list_object_storage_buckets', { path: { zone } })
  const buckets: readonly Listed[] = data?.items.map((bucket) => ({ ...bucket, id: bucket.name })) ?? []
  return (
    <Panel
      title={storageTexts().buckets}
      buttons={
        may('create_object_storage_bucket') ? (
          <Button icon={<Plus aria-hidden="true" />} onPress={() => setCreating(true)}>
            {storageTexts().createBucket}
          </Button>
        ) : undefined
      }
      isBare={buckets.length > 0}
    >
      {error instanceof Refusal ? <ProblemView refusal={error} retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading lines={2} /> : null}
      {data !== undefined && buckets.length === 0 ? <Soft>{storageTexts().noBuckets}</Soft> : null}
      {buckets.length === 0 ? null : (
        <Table<Listed>
          label={storageTexts().bucketsIn(zone)}
          items={buckets}
          columns={[
            {
              id: 'name',
              name: t().fields.name,
              cell: ({ name }) => <AriaLink href={bucketHref(zone, name)}>{name}</AriaLink>,
            },
            { id: 'created', name: t().fields.created_at, cell: ({ created_at: at }) => <Time instant={at} /> },
          ]}
          {...(may('delete_object_storage_bucket')
            ? { menuOf: ({ name }) => <BucketMenu name={name} remove={() => setDoomed(name)} /> }
            : {})}
        />
      )}
      {isCreating ? <CreateBucket storage={storage} close={() => setCreating(false)} /> : null}
      {doomed === undefined ? null : (
        <DeleteBucket key={doomed} zone={zone} bucket={doomed} close={() => setDoomed(undefined)} />
      )}
    </Panel>
  )
}

const BucketMenu = ({ name, remove }: { readonly name: string; readonly remove: () => void }): ReactNode => (
  <Menu
    label={t().list.actionsOf(name)}
    entries={[{ id: 'delete', name: storageTexts().remove, isBad: true, run: remove }]}
  >
    <Button kind="quiet" label={t().list.actionsOf(name)} icon={<Ellipsis aria-hidden="true" />} />
  </Menu>
)

function CreateBucket({ storage, close }: InZone & { readonly close: () => void }): ReactNode {
  const { zone, bucket_prefix: prefix } = storage
  const [name, setName] = useState(prefix ?? '')
  const keys = useRequestKeys()
  const go = useGo()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const body = { name }
    await call('create_object_storage_bucket', { path: { zone }, body, idempotencyKey: keys.of(body) })
    await readAgain('list_object_storage_buckets')
    close()
    go(bucketHref(zone, name))
  })
  return (
    <Dialog title={storageTexts().createBucket} onClose={close} isFirm={isBusy}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField
          label={t().fields.name}
          note={prefix === null ? undefined : storageTexts().beginsWith(prefix)}
          value={name}
          onChange={setName}
          wrong={refusal?.fields['name']}
          isRequired
          autoFocus
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close} why={isBusy ? t().page.busy(storageTexts().createBucket) : undefined}>
            {t().ui.cancel}
          </Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {storageTexts().createBucket}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface DeleteBucketProps {
  readonly zone: string
  readonly bucket: string
  readonly close: () => void
}

function DeleteBucket({ zone, bucket, close }: DeleteBucketProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const remove = async (): Promise<void> => {
    setBusy(true)
    try {
      await call('delete_object_storage_bucket', { path: { zone, bucket } })
      await readAgain('list_object_storage_buckets')
      close()
    } catch (error) {
      setRefusal(asRefusal('delete_object_storage_bucket', error))
      setBusy(false)
    }
  }
  return (
    <Confirm
      title={storageTexts().deleteTitle(bucket)}
      text={storageTexts().deleteBucketText}
      button={storageTexts().remove}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void remove()}
      onClose={close}
    />
  )
}
