/** `/object-storage`: one endpoint for each zone, its buckets, its keys, and the lines that programs need. */
import { Archive, Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import type { ObjectStorage } from '../../client/schema.ts'
import { itemsOf, readAgain, useList } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { asRefusal, Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { ActivityOf } from '../nouns/activity.tsx'
import { Once } from '../nouns/once.tsx'
import { type Secrets, secretsIn } from '../nouns/secrets.ts'
import { useZones } from '../nouns/options.ts'
import { useRequestKeys } from '../nouns/request-key.ts'
import { Secret } from '../nouns/secret.tsx'
import { Time, wordOf } from '../nouns/value.tsx'
import { uuid } from '../system.ts'
import { bytes, number } from '../texts/format.ts'
import { storageTexts } from '../texts/object-storage.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy, Snippet } from '../ui/copy.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { SelectField } from '../ui/field.tsx'
import { Empty, Facts, Loading, Page, Panel, Row, Soft, Stack } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Bar, type Look, State } from '../ui/state.tsx'
import { notify } from '../ui/toast.tsx'
import { Buckets } from './buckets.tsx'
import { linesOf } from './object-storage-lines.ts'
import { useSubmission } from './submission.ts'

export function ObjectStoragePage(): ReactNode {
  const { data, error, refetch } = useList('list_object_storage')
  const [isEnabling, setEnabling] = useState(false)
  const [secrets, setSecrets] = useState<Secrets>()
  const may = useMay()
  const items = itemsOf(data)
  const enable = may('enable_object_storage') ? (
    <Button kind="primary" icon={<Plus aria-hidden="true" />} onPress={() => setEnabling(true)}>
      {storageTexts().enable}
    </Button>
  ) : undefined
  return (
    <Page title={t().objectStorage.title} buttons={items.length === 0 ? undefined : enable}>
      {error instanceof Refusal ? <ProblemView refusal={error} retry={() => void refetch()} /> : null}
      {data === undefined && error === null ? <Loading lines={5} /> : null}
      {data !== undefined && items.length === 0 ? (
        <Empty icon={<Archive />} title={storageTexts().emptyTitle} text={storageTexts().emptyText}>
          {enable}
          <Snippet
            label={t().list.asCommand}
            forms={[{ name: 'CLI', text: 'svccloud object-storage enable --zone ZONE' }]}
          />
        </Empty>
      ) : null}
      {items.map((item) => (
        <Zone key={item.zone} item={item} show={setSecrets} />
      ))}
      {isEnabling ? (
        <Enable taken={items.map(({ zone }) => zone)} show={setSecrets} close={() => setEnabling(false)} />
      ) : null}
      {secrets === undefined ? null : (
        <Once shown={[{ id: 'keys', name: t().objectStorage.title, secrets }]} onClose={() => setSecrets(undefined)} />
      )}
    </Page>
  )
}

interface EnableProps {
  readonly taken: readonly string[]
  readonly show: (secrets: Secrets | undefined) => void
  readonly close: () => void
}

function Enable({ taken, show, close }: EnableProps): ReactNode {
  const zones = useZones().map((zone) => (taken.includes(zone.id) ? { ...zone, why: storageTexts().isEnabled } : zone))
  const [chosen, setChosen] = useState<string>()
  const keys = useRequestKeys()
  const zone = chosen ?? zones.find(({ why }) => why === undefined)?.id
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    if (zone === undefined) return
    const body = { zone }
    const answer = await call('enable_object_storage', { body, idempotencyKey: keys.of(body) })
    await readAgain('list_object_storage')
    show(secretsIn(answer))
    close()
  })
  return (
    <Dialog title={storageTexts().enable} onClose={close} isFirm={isBusy}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <SelectField
          label={t().fields.zone}
          options={zones}
          value={zone}
          onChange={setChosen}
          wrong={refusal?.fields['zone']}
        />
        <Soft>{storageTexts().billed}</Soft>
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close} why={isBusy ? t().page.busy(storageTexts().enable) : undefined}>
            {t().ui.cancel}
          </Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {storageTexts().enable}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

interface ZoneProps {
  readonly item: ObjectStorage
  readonly show: (secrets: Secrets | undefined) => void
}

const LOOKS: Readonly<Record<ObjectStorage['durability'], Look>> = {
  replicated: 'good',
  degraded: 'busy',
  single_copy: 'off',
}

type Question = 'rotate' | 'migrate'

function Zone({ item, show }: ZoneProps): ReactNode {
  const [question, setQuestion] = useState<Question>()
  const may = useMay()
  const { zone, endpoint, durability, used_bytes: used, quota_bytes: quota, usage_measured_at: measured } = item
  const usage = storageTexts().used(bytes(used), bytes(quota), number(item.object_count))
  return (
    <Stack>
      <Panel
        title={zone}
        buttons={
          <Row>
            {may('migrate_object_storage') && item.backend === 'svc-s3-single' ? (
              <Button kind="quiet" onPress={() => setQuestion('migrate')}>
                {storageTexts().migrate}
              </Button>
            ) : null}
            {may('rotate_object_storage_keys') ? (
              <Button kind="quiet" onPress={() => setQuestion('rotate')}>
                {storageTexts().rotate}
              </Button>
            ) : null}
          </Row>
        }
      >
        <Stack>
          <Facts
            facts={[
              { name: storageTexts().endpoint, value: <Copy text={endpoint} /> },
              { name: t().fields.access_key_id, value: <Copy text={item.access_key_id} /> },
              ...(item.bucket_prefix === null
                ? []
                : [{ name: storageTexts().bucketPrefix, value: <Copy text={item.bucket_prefix} /> }]),
              {
                name: t().fields.durability,
                value: <State look={LOOKS[durability]}>{wordOf(durability)}</State>,
              },
              ...(measured === null ? [] : [{ name: storageTexts().measured, value: <Time instant={measured} /> }]),
            ]}
          />
          <Soft>{usage}</Soft>
          <Bar part={quota === 0 ? 0 : used / quota} label={usage} isBad={quota > 0 && used > quota * 0.9} />
        </Stack>
      </Panel>
      <Buckets storage={item} />
      <Secret operation="get_object_storage_credentials" path={{ zone }} />
      <Panel title={storageTexts().lines}>
        <Stack>
          <Soft>{storageTexts().linesNote}</Soft>
          <Snippet label={storageTexts().lines} forms={linesOf(item)} />
        </Stack>
      </Panel>
      <ActivityOf type="object_storage" id={item.id} />
      {question === undefined ? null : (
        <Ask key={question} question={question} item={item} show={show} close={() => setQuestion(undefined)} />
      )}
    </Stack>
  )
}

interface AskProps extends ZoneProps {
  readonly question: Question
  readonly close: () => void
}

function Ask({ question, item: { zone }, show, close }: AskProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const operation = question === 'rotate' ? 'rotate_object_storage_keys' : 'migrate_object_storage'
  const run = async (): Promise<void> => {
    setBusy(true)
    try {
      const answer = await call(operation, { path: { zone }, idempotencyKey: uuid() })
      await readAgain('list_object_storage', 'list_operations')
      if (question === 'rotate') show(secretsIn(answer))
      else notify(t().operations.started(storageTexts().migrate))
      close()
    } catch (error) {
      setRefusal(asRefusal(operation, error))
      setBusy(false)
    }
  }
  return (
    <Confirm
      title={t().choices.confirm(storageTexts()[question], zone)}
      goes={[question === 'rotate' ? storageTexts().goesKeys : storageTexts().goesWrites]}
      stays={question === 'rotate' ? [storageTexts().staysObjects] : [storageTexts().staysAddress]}
      type={question === 'rotate' ? zone : undefined}
      button={storageTexts()[question]}
      isDanger={question === 'rotate'}
      isBusy={isBusy}
      refusal={refusal}
      onConfirm={() => void run()}
      onClose={close}
    />
  )
}
