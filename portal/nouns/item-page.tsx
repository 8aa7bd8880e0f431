/** The page of one item of any noun. */
import { Ellipsis, Pencil } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { portal } from '../api/portal.ts'
import { Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { nounTexts, t } from '../texts/index.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { focusFirstFault } from '../ui/faults.ts'
import { PairsField, Switch } from '../ui/field.tsx'
import { Empty, Facts, Loading, Page, Panel, Stack, type TabOf, Tabs } from '../ui/layout.tsx'
import { Note } from '../ui/state.tsx'
import { Menu } from '../ui/menu.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { keep, nameOfAction, useActions, whyOf } from './actions.tsx'
import { ActivityOf, OperationProgress } from './activity.tsx'
import { Properties } from './edit.tsx'
import { labelOf } from './fields.tsx'
import { isEmpty } from './form.ts'
import { StateOf } from './list-page.tsx'
import { isInProgress, type Noun, type Thing } from './noun.ts'
import { Secret } from './secret.tsx'
import { labelsOf, pathTo, send, thingIn, useThing } from './reads.ts'
import { useTitle } from './titles.ts'
import { Labels, Value } from './value.tsx'

export interface ItemPageProps {
  readonly noun: Noun
  readonly id: string
  readonly tab: string
  readonly onTab: (tab: string) => void
}

export function ItemPage({ noun, id, tab, onTab }: ItemPageProps): ReactNode {
  const [isBusy, setBusy] = useState(false)
  const { read, item, isGone } = useThing(noun, id, { isBusy })
  const isNowBusy = item !== undefined && isInProgress(noun, item)
  if (isNowBusy !== isBusy) setBusy(isNowBusy)
  const texts = nounTexts(noun.name)
  if (isGone) return <Gone noun={noun} id={id} />
  if (item === undefined)
    return (
      <Page title={texts.one} crumbs={[{ name: texts.many, href: noun.path }]}>
        <Panel>
          {read.error instanceof Refusal ? (
            <ProblemView refusal={read.error} retry={() => void read.refetch()} />
          ) : (
            <Loading lines={6} />
          )}
        </Panel>
      </Page>
    )
  return <Whole noun={noun} item={item} tab={tab} onTab={onTab} isStale={read.isError} />
}

function Gone({ noun, id }: { readonly noun: Noun; readonly id: string }): ReactNode {
  const texts = nounTexts(noun.name)
  const Icon = noun.icon
  return (
    <Page title={texts.one} crumbs={[{ name: texts.many, href: noun.path }]}>
      <Empty icon={<Icon />} title={t().page.gone(texts.one)} text={portal().hasActivity ? t().page.goneText : ''}>
        <ButtonLink href={noun.path}>{t().page.toList(texts.many)}</ButtonLink>
      </Empty>
      {portal().hasActivity ? <ActivityOf type={noun.name} id={id} /> : null}
    </Page>
  )
}

interface WholeProps {
  readonly noun: Noun
  readonly item: Thing
  readonly tab: string
  readonly onTab: (tab: string) => void
  readonly isStale: boolean
}

function Whole({ noun, item, tab, onTab, isStale }: WholeProps): ReactNode {
  const texts = nounTexts(noun.name)
  const title = useTitle(noun, item)
  const tabs = tabsOf(noun, item)
  const detail = item['state_detail']
  return (
    <Page
      title={title}
      crumbs={[{ name: texts.many, href: noun.path }]}
      beside={
        <>
          <StateOf noun={noun} item={item} />
          {typeof detail === 'string' && detail !== '' ? <span dir="auto">{detail}</span> : null}
        </>
      }
      buttons={<PageActions noun={noun} item={item} />}
    >
      {isStale ? <Note look="busy">{t().problem.partly}</Note> : null}
      <OperationProgress item={item} />
      <Tabs label={title} tabs={tabs} chosen={tabs.some(({ id }) => id === tab) ? tab : 'overview'} onChoose={onTab} />
    </Page>
  )
}

function tabsOf(noun: Noun, item: Thing): readonly TabOf[] {
  const own = (noun.tabs ?? []).map(({ id, name, view: View }) => ({ id, name: name(), content: <View item={item} /> }))
  const hasSettings = noun.update !== undefined
  return [
    { id: 'overview', name: t().page.overview, content: <Overview noun={noun} item={item} /> },
    ...own,
    ...(hasSettings
      ? [{ id: 'settings', name: t().page.settings, content: <Settings noun={noun} item={item} /> }]
      : []),
    ...(portal().hasActivity
      ? [{ id: 'activity', name: t().page.activity, content: <ActivityOf type={noun.name} id={item.id} /> }]
      : []),
  ]
}

function PageActions({ noun, item }: { readonly noun: Noun; readonly item: Thing }): ReactNode {
  const actions = useActions(noun)
  const first = actions.allowed.filter(({ isFirst }) => isFirst === true)
  const others = actions.allowed.filter(({ isFirst }) => isFirst !== true)
  return (
    <>
      {first.map((action) => (
        <Button key={nameOfAction(action)} why={whyOf(action, item)} onPress={() => actions.start(action, [item])}>
          {nameOfAction(action)}
        </Button>
      ))}
      {others.length === 0 ? null : (
        <Menu label={t().page.more} entries={actions.entriesFor(item, others)}>
          <Button label={t().page.more} icon={<Ellipsis aria-hidden="true" />} />
        </Menu>
      )}
      {actions.dialog}
    </>
  )
}

function Overview({ noun, item }: { readonly noun: Noun; readonly item: Thing }): ReactNode {
  const { Head } = noun
  return (
    <Stack>
      {Head === undefined ? null : <Head item={item} />}
      <Panel>
        <Facts
          facts={[
            ...noun.facts
              .filter((field) => !isEmpty(item[field]))
              .map((field) => ({
                name: labelOf(field),
                value: <Value field={field} value={item[field]} />,
              })),
            // some have no other name
            ...(item.id === noun.titleOf(item) ? [] : [{ name: t().page.id, value: <Copy text={item.id} /> }]),
          ]}
        />
      </Panel>
      {noun.secret === undefined ? null : <Secret operation={noun.secret} path={{ id: item.id }} />}
    </Stack>
  )
}

function Settings({ noun, item }: { readonly noun: Noun; readonly item: Thing }): ReactNode {
  const may = useMay()
  const [isEditing, setEditing] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()
  const labels = labelsOf(item)
  const canChange = noun.update !== undefined && may(noun.update)
  const change = async (body: Readonly<Record<string, unknown>>): Promise<void> => {
    if (noun.update === undefined) return
    try {
      const changed = thingIn(noun, await send(noun.update, { path: pathTo(noun.update, item.id), body }))
      if (changed !== undefined) keep(noun, changed)
      setRefusal(undefined)
      setEditing(false)
    } catch (error) {
      if (error instanceof Refusal) setRefusal(error)
    }
  }
  return (
    <Stack>
      {refusal === undefined || isEditing ? null : <ProblemView refusal={refusal} />}
      <Properties noun={noun} item={item} />
      {'labels' in item ? (
        <Panel
          title={t().page.labels}
          buttons={
            canChange ? (
              <Button kind="quiet" icon={<Pencil aria-hidden="true" />} onPress={() => setEditing(true)}>
                {t().page.editLabels}
              </Button>
            ) : undefined
          }
        >
          {Object.keys(labels).length === 0 ? <p className="soft">{t().page.noLabels}</p> : <Labels labels={labels} />}
        </Panel>
      ) : null}
      {'is_protected' in item ? (
        <Panel title={t().page.protection}>
          <Switch
            label={t().page.protected}
            note={t().page.protectedNote}
            isOn={item['is_protected'] === true}
            isOff={!canChange}
            onChange={(isOn) => void change({ is_protected: isOn })}
          />
        </Panel>
      ) : null}
      {isEditing ? (
        <LabelsDialog
          labels={labels}
          refusal={refusal}
          onSave={(next) => void change({ labels: next })}
          onClose={() => setEditing(false)}
        />
      ) : null}
    </Stack>
  )
}

/** Of the labels, or of one of them: `labels.tier`. */
const wrongIn = (refusal: Refusal | undefined): string | undefined =>
  Object.entries(refusal?.fields ?? {}).find(([name]) => /^labels(\.|$)/.test(name))?.[1]

interface LabelsDialogProps {
  readonly labels: Readonly<Record<string, string>>
  readonly refusal: Refusal | undefined
  readonly onSave: (labels: Readonly<Record<string, string>>) => void
  readonly onClose: () => void
}

function LabelsDialog({ labels, refusal, onSave, onClose }: LabelsDialogProps): ReactNode {
  const [next, setNext] = useState(labels)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => void (refusal === undefined || focusFirstFault(place.current)), [refusal])
  return (
    <Dialog title={t().page.editLabels} onClose={onClose}>
      <div className="fields" ref={place}>
        <PairsField label={t().page.labels} value={next} onChange={setNext} wrong={wrongIn(refusal)} />
      </div>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <div className="dialog-end">
        <Button onPress={onClose}>{t().ui.cancel}</Button>
        <Button kind="primary" onPress={() => onSave(next)}>
          {t().ui.save}
        </Button>
      </div>
    </Dialog>
  )
}
