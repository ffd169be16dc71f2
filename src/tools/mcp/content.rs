//! A server's content as text and images. Whatever has neither is described.

use serde_json::Value;

use crate::tools::Image;

/// How many images of an answer the model is shown.
pub(super) const IMAGES: usize = 4;

/// Content blocks as text and images.
pub(super) fn readable(blocks: &[Value]) -> (String, Vec<Image>) {
    let mut images = Vec::new();
    let texts: Vec<_> = blocks.iter().map(|it| block(it, &mut images)).collect();
    (texts.join("\n"), images)
}

/// A content block: text as it is, an image beside its description, of anything else a description.
fn block(block: &Value, images: &mut Vec<Image>) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kilobytes = |data: &Value| (data.as_str().map_or(0, str::len) * 3 / 4).div_ceil(1024);
    let resource = &block["resource"];
    match block["type"].as_str() {
        Some("text") => text(&block["text"]),
        Some("image") if images.len() < IMAGES && picture(block).is_some() => {
            images.extend(picture(block));
            format!(
                "[image, {}, {} kB]",
                text(&block["mimeType"]),
                kilobytes(&block["data"])
            )
        }
        Some(kind @ ("image" | "audio")) => {
            format!(
                "[{kind}, {}, {} kB: not shown]",
                text(&block["mimeType"]),
                kilobytes(&block["data"])
            )
        }
        Some("resource") if resource["text"].is_string() => {
            format!("[{}]\n{}", text(&resource["uri"]), text(&resource["text"]))
        }
        Some("resource") => format!(
            "[{}, {} kB: not shown]",
            text(&resource["uri"]),
            kilobytes(&resource["blob"])
        ),
        Some("resource_link") => format!("[{} at {}]", text(&block["name"]), text(&block["uri"])),
        _ => format!("[{block}]"),
    }
}

/// An image that models take.
fn picture(block: &Value) -> Option<Image> {
    let mime_type = Image::FORMATS
        .into_iter()
        .find(|format| block["mimeType"] == **format)?;
    let data = block["data"]
        .as_str()
        .filter(|data| data.len() / 4 * 3 <= Image::LARGEST)?;
    let is_base64 = data
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    is_base64.then(|| Image {
        mime_type: mime_type.to_owned(),
        data: data.to_owned(),
    })
}
